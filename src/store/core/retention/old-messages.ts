import type { Uuid } from '../../../api/records.js';
import { usedVariables, variableNames } from '../../../api/variables.js';
import { joinVariables } from '../../../engine/rules/meta.js';
import { erasedAddress } from '../../../engine/rules/subscription.js';
import type { Operations } from '../../operations.js';
import type { OldMessage } from '../../submissions.js';
import type { SliceOfExpired } from '../expired.js';
import { parseTexts, parseUsed, readEnvelope } from '../rows.js';
import type { Sql } from '../sql.js';

export interface LeavingRow {
	id: number;
	uuid: Uuid;
	to_key: string;
	fence: number;
	own: string;
	seq: number;
	type: 'TRANSACTIONAL' | 'BULK';
	envelope: string;
	campaign: Uuid | null;
	campaign_seq: number | null;
	content_sha256: string;
	used: string;
	context: string;
	courier: string;
}

export function createOldMessages(sql: Sql) {
	return {
		getOldMessage: async ({ id }) => {
			const row = await sql.get<
				Omit<OldMessage, 'from' | 'variables'> & { envelope: string; variables: string | null }
			>(
				`SELECT s.id AS submission, s.envelope, o.list_id, o.to_key AS "to", o.variables
				FROM old_messages o
				JOIN submissions s ON s.seq = o.submission_seq
				WHERE o.uuid = ${sql.dialect.uuidBytes('?')}`,
				[id],
			);
			if (row === undefined) return null;
			const { submission, list_id, to, envelope, variables } = row;
			const { from } = readEnvelope(envelope);
			return { submission, list_id, to, from, variables: variables === null ? {} : parseTexts(variables) };
		},
	} satisfies Partial<Operations>;
}

const pages = ['unsubscribe_url', 'view_url'];

/** The submissions of the slice whose mails have no page of ours; the others' messages are kept by their links. */
export async function keepLinks(
	sql: Sql,
	leaving: readonly LeavingRow[],
	{ onlyLinks }: Pick<SliceOfExpired, 'onlyLinks'>,
): Promise<Set<number>> {
	const named = new Map<string, string[] | null>();
	for (const { content_sha256 } of leaving)
		if (!named.has(content_sha256)) named.set(content_sha256, await namesIn(sql, content_sha256, onlyLinks));
	const without = new Set<number>();
	const kept: LeavingRow[] = [];
	for (const row of leaving) {
		const hasPage = row.type === 'BULK' || named.get(row.content_sha256) !== null || usesPage(row);
		if (!hasPage) without.add(row.seq);
		// A message that was never leased was never sent; a service has other pages.
		else if (row.fence > 0 && row.courier === 'smtp' && row.to_key !== erasedAddress) kept.push(row);
	}
	sql.write(
		`INSERT INTO old_messages (uuid, submission_seq, list_id, subscriber_id, to_key)
		SELECT ${sql.dialect.uuidBytes('m.uuid')}, m.submission_seq, m.list_id, m.subscriber_id, m.to_key
		FROM messages m
		WHERE ${sql.dialect.oneOf('m.id')}
		ON CONFLICT (uuid) DO NOTHING`,
		[JSON.stringify(kept.map(({ id }) => id))],
	);
	for (const row of kept) keepVariables(sql, row, named.get(row.content_sha256) ?? []);
	return without;
}

function usesPage({ used }: LeavingRow): boolean {
	return variableNames(parseUsed(used) ?? []).some((name) => pages.includes(name));
}

/** The variables in the targets of a content's links; null: it has no link. */
async function namesIn(
	sql: Sql,
	sha256: string,
	onlyLinks: SliceOfExpired['onlyLinks'],
): Promise<string[] | null> {
	const row = await sql.get<{ html: string | null }>('SELECT html FROM contents WHERE sha256 = ?', [sha256]);
	const html = onlyLinks(row?.html ?? '');
	if (html === null) return null;
	return variableNames(usedVariables({ subject: '', text: null, html }));
}

function keepVariables(sql: Sql, { uuid, own, used, context }: LeavingRow, names: readonly string[]): void {
	if (names.length === 0) return;
	const all = joinVariables(parseTexts(own), parseUsed(used), parseTexts(context));
	const needed = Object.entries(all).filter(([name]) => names.includes(name));
	if (needed.length === 0) return;
	sql.write(`UPDATE old_messages SET variables = ? WHERE uuid = ${sql.dialect.uuidBytes('?')}`, [
		JSON.stringify(Object.fromEntries(needed)),
		uuid,
	]);
}
