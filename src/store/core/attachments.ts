import {
	type AttachedFile,
	type Attachment,
	notUploaded,
	type StoredBytes,
	sizeFault,
} from '../../api/attachments.js';
import { type Micros, microsPerDay } from '../../api/datetime.js';
import type { FieldErrors } from '../../api/errors.js';
import type { Operations } from '../operations.js';
import type { Seen } from '../store.js';
import { column, conditionsOf, each, insertInto, type Sql } from './sql.js';

const unnamedFor: Micros = microsPerDay;
/** An upload that expires within an hour counts as missing, so `send` uploads the file again. */
const atLeast: Micros = microsPerDay / 24;
const mostDropped = 10;
const mostUnnamed = { files: 5_000, bytes: 1024 ** 3 };

export function createAttachments(sql: Sql) {
	return {
		findAttachment: async ({ sha256, now, ...seen }) =>
			await findFile(sql, sha256, seen, ['(expires_at IS NULL OR expires_at > ?)', now + atLeast]),
		getAttachment: async ({ sha256 }) =>
			(await column<Uint8Array>(sql, 'SELECT bytes FROM attachments WHERE sha256 = ?', [sha256]))[0] ?? null,
		putAttachment: async ({ sha256, bytes, owner, now }) => {
			const size = bytes.length;
			await dropExpiredAttachments(sql, { now, limit: mostDropped });
			if (owner !== undefined && (await hasTooMuch(sql, { owner, sha256, size, now }))) return null;
			insertInto(
				sql,
				'attachments',
				{ sha256, size, created_at: now, expires_at: now + unnamedFor, bytes },
				'ON CONFLICT (sha256) DO UPDATE SET expires_at = excluded.expires_at WHERE attachments.expires_at IS NOT NULL',
			);
			if (owner !== undefined)
				insertInto(sql, 'attachment_owners', { sha256, owner }, 'ON CONFLICT DO NOTHING');
			return { sha256, size };
		},
	} satisfies Partial<Operations>;
}

const isOwner =
	'EXISTS (SELECT 1 FROM attachment_owners o WHERE o.sha256 = attachments.sha256 AND o.owner = ?)';

async function findFile(
	sql: Sql,
	sha256: string,
	{ only_of }: Seen,
	more: readonly [string, number?] = ['TRUE'],
): Promise<StoredBytes | null> {
	const { where, values } = conditionsOf([['sha256 = ?', sha256], more, [isOwner, only_of]]);
	return (await sql.get<StoredBytes>(`SELECT sha256, size FROM attachments WHERE ${where}`, values)) ?? null;
}

async function hasTooMuch(
	sql: Sql,
	{ owner, sha256, size, now }: { owner: string; sha256: string; size: number; now: Micros },
): Promise<boolean> {
	const [[files = 0, bytes = 0] = []] = await sql.tuples<[number, number]>(
		`SELECT count(*), coalesce(sum(size), 0)
		FROM attachments
		WHERE expires_at IS NOT NULL AND created_at > ? AND sha256 <> ? AND ${isOwner}`,
		[now - unnamedFor, sha256, owner],
	);
	return files >= mostUnnamed.files || Number(bytes) + size > mostUnnamed.bytes;
}

export async function dropExpiredAttachments(
	sql: Sql,
	{ now, limit }: { now: Micros; limit: number },
): Promise<{ changes: number }> {
	return await sql.run(
		`DELETE FROM attachments
		WHERE sha256 IN (SELECT sha256 FROM attachments WHERE expires_at <= ? LIMIT ?)`,
		[now, limit],
	);
}

export async function attachmentErrors(
	sql: Sql,
	files: readonly Attachment[] = [],
	seen: Seen = {},
): Promise<FieldErrors | null> {
	const found = await each(sql, files, ({ sha256 }) => findFile(sql, sha256, seen));
	const missing = files[found.indexOf(null)];
	return missing === undefined
		? sizeFault(found.map((file) => file?.size ?? 0))
		: notUploaded(missing.sha256);
}

export function nameAttachments(sql: Sql, content_sha256: string, files: readonly Attachment[] = []): void {
	for (const [position, { name, type, sha256, content_id = null }] of files.entries()) {
		const row = { content_sha256, position, name, type, sha256, content_id };
		insertInto(sql, 'content_attachments', row, 'ON CONFLICT DO NOTHING');
		const isNamed = 'UPDATE attachments SET expires_at = NULL WHERE sha256 = ? AND expires_at IS NOT NULL';
		sql.write(isNamed, [sha256]);
	}
}

export async function attachmentsOf(sql: Sql, content_sha256: string): Promise<AttachedFile[]> {
	const rows = await sql.all<Omit<AttachedFile, 'content_id'> & { content_id: string | null }>(
		`SELECT c.name, c.type, c.sha256, c.content_id, a.size
		FROM content_attachments c
		JOIN attachments a ON a.sha256 = c.sha256
		WHERE c.content_sha256 = ?
		ORDER BY c.position`,
		[content_sha256],
	);
	return rows.map(({ content_id, ...file }) => ({ ...file, ...(content_id !== null && { content_id }) }));
}

export async function dropContent(sql: Sql, content_sha256: string, now: Micros | null): Promise<void> {
	const files = await attachmentsOf(sql, content_sha256);
	const { changes } = await sql.run(
		`DELETE FROM contents
		WHERE sha256 = ? AND sha256 <> 'erased'
			AND NOT EXISTS (SELECT 1 FROM submissions WHERE content_sha256 = contents.sha256)`,
		[content_sha256],
	);
	for (const { sha256 } of changes > 0 ? files : []) dropUnnamed(sql, sha256, now);
}

/** Deletes a file that no content has. With `now`, it expires a day after `now` instead, because a send may name it. */
export function dropUnnamed(sql: Sql, sha256: string, now: Micros | null): void {
	const isUnnamed = 'NOT EXISTS (SELECT 1 FROM content_attachments WHERE sha256 = attachments.sha256)';
	if (now === null) sql.write(`DELETE FROM attachments WHERE sha256 = ? AND ${isUnnamed}`, [sha256]);
	else {
		const expiring = `UPDATE attachments SET expires_at = ? WHERE sha256 = ? AND ${isUnnamed}`;
		sql.write(expiring, [now + unnamedFor, sha256]);
	}
}
