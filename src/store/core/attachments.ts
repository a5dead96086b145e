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
import { each, type Sql } from './sql.js';

const unnamedFor: Micros = microsPerDay;
const atLeast: Micros = microsPerDay / 24;
const mostDropped = 10;

const mostUnnamed = { files: 5_000, bytes: 1024 ** 3 };

export function createAttachments(sql: Sql) {
	return {
		findAttachment: async ({ sha256, now, ...seen }) => {
			const { where, values } = uploadedBy(seen);
			return (
				(await sql.get<StoredBytes>(
					`SELECT sha256, size
					FROM attachments
					WHERE sha256 = ? AND (expires_at IS NULL OR expires_at > ?) AND ${where}`,
					[sha256, now + atLeast, ...values],
				)) ?? null
			);
		},
		getAttachment: async ({ sha256 }) =>
			(await sql.get<{ bytes: Uint8Array }>('SELECT bytes FROM attachments WHERE sha256 = ?', [sha256]))
				?.bytes ?? null,
		putAttachment: async ({ sha256, bytes, owner, now }) => {
			await dropExpiredAttachments(sql, { now, limit: mostDropped });
			if (owner !== undefined && (await hasTooMuch(sql, { owner, sha256, size: bytes.length, now })))
				return null;
			sql.write(
				`INSERT INTO attachments (sha256, size, created_at, expires_at, bytes)
				VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (sha256) DO UPDATE SET expires_at = excluded.expires_at WHERE attachments.expires_at IS NOT NULL`,
				[sha256, bytes.length, now, now + unnamedFor, bytes],
			);
			if (owner !== undefined)
				sql.write('INSERT INTO attachment_owners VALUES (?, ?) ON CONFLICT DO NOTHING', [sha256, owner]);
			return { sha256, size: bytes.length };
		},
	} satisfies Partial<Operations>;
}

/** A client that sees its own records alone knows a file by having uploaded it, not by its hash. */
function uploadedBy({ only_of }: Seen): { where: string; values: string[] } {
	return only_of === undefined ? { where: 'TRUE', values: [] } : { where: isOwner, values: [only_of] };
}

const isOwner =
	'EXISTS (SELECT 1 FROM attachment_owners o WHERE o.sha256 = attachments.sha256 AND o.owner = ?)';

async function hasTooMuch(
	sql: Sql,
	{ owner, sha256, size, now }: { owner: string; sha256: string; size: number; now: Micros },
): Promise<boolean> {
	const [[files = 0, bytes = 0] = []] = await sql.tuples<[number, number]>(
		// attachments_expiring
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
		// attachments_expiring
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
	const { where, values } = uploadedBy(seen);
	const found = await each(sql, files, ({ sha256 }) =>
		sql.get<{ size: number }>(`SELECT size FROM attachments WHERE sha256 = ? AND ${where}`, [
			sha256,
			...values,
		]),
	);
	const missing = files[found.indexOf(undefined)];
	return missing === undefined
		? sizeFault(found.map((file) => file?.size ?? 0))
		: notUploaded(missing.sha256);
}

export function nameAttachments(sql: Sql, content_sha256: string, files: readonly Attachment[] = []): void {
	for (const [position, { name, type, sha256, content_id = null }] of files.entries()) {
		sql.write(
			`INSERT INTO content_attachments (content_sha256, position, name, type, sha256, content_id)
			VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT DO NOTHING`,
			[content_sha256, position, name, type, sha256, content_id],
		);
		sql.write('UPDATE attachments SET expires_at = NULL WHERE sha256 = ? AND expires_at IS NOT NULL', [
			sha256,
		]);
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

/** Deletes a content that no submission has any more, and the files that only it named; see `dropUnnamed`. */
export async function dropContent(
	sql: Sql,
	content_sha256: string,
	when: { now: Micros } | 'at once',
): Promise<void> {
	const files = await attachmentsOf(sql, content_sha256);
	const { changes } = await sql.run(
		// submissions_of_content, as the foreign key's check does
		`DELETE FROM contents
		WHERE sha256 = ? AND sha256 <> 'erased'
			AND NOT EXISTS (SELECT 1 FROM submissions WHERE content_sha256 = contents.sha256)`,
		[content_sha256],
	);
	if (changes > 0)
		dropUnnamed(
			sql,
			files.map(({ sha256 }) => sha256),
			when,
		);
}

/**
 * Deletes those that no content names: at once, or as an upload that no content names in time, for one that was uploaded
 * or found meanwhile is named in a moment.
 */
export function dropUnnamed(sql: Sql, files: readonly string[], when: { now: Micros } | 'at once'): void {
	// contents_of_attachment
	const isUnnamed = 'NOT EXISTS (SELECT 1 FROM content_attachments WHERE sha256 = attachments.sha256)';
	for (const sha256 of files)
		if (when === 'at once') sql.write(`DELETE FROM attachments WHERE sha256 = ? AND ${isUnnamed}`, [sha256]);
		else
			sql.write(`UPDATE attachments SET expires_at = ? WHERE sha256 = ? AND ${isUnnamed}`, [
				when.now + unnamedFor,
				sha256,
			]);
}
