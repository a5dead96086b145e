/** Where an address stands besides rows of its own: among the copies of other people's messages, and in kept answers. */
import { type EmailKey, parseMailbox } from '../../api/address.js';
import { erasedAddress } from '../../engine/rules/erasure.js';
import type { Sql } from './sql.js';
import { readEnvelope } from './stored-json.js';

/** `addresses`: every way it was written. Walks submissions and answers, which no index leads to: it is rare. */
export function eraseTraces(sql: Sql, address: EmailKey, addresses: readonly string[]): void {
	eraseCopies(sql, address, addresses);
	for (const table of answerTables) replaceIn(sql, table, addresses);
	for (const text of addresses) eraseResults(sql, text);
}

/** Columns that hold JSON of ours in which an address may stand, and the key of their rows. */
const answerTables = [
	{ name: 'idempotency_keys', column: 'answer' },
	{ name: 'import_acks', column: 'ack' },
	{ name: 'mailing_acks', column: 'ack' },
] as const;

function eraseCopies(sql: Sql, address: EmailKey, addresses: readonly string[]): void {
	for (const text of addresses) {
		const found = sql.all<{ seq: number; envelope: string }>(
			'SELECT seq, envelope FROM submissions WHERE instr(lower(envelope), lower(?)) > 0',
			text,
		);
		for (const { seq, envelope } of found) {
			const stored = readEnvelope(envelope);
			const kept = (texts: readonly string[]) => texts.filter((one) => parseMailbox(one)?.key !== address);
			const { reply_to, cc, bcc } = stored;
			const rest = { ...stored, reply_to: kept(reply_to), cc: kept(cc), bcc: kept(bcc) };
			sql.run('UPDATE submissions SET envelope = ? WHERE seq = ?', JSON.stringify(rest), seq);
		}
	}
}

function replaceIn(
	sql: Sql,
	{ name, column }: (typeof answerTables)[number],
	addresses: readonly string[],
): void {
	for (const text of addresses) {
		// As it stands within JSON, without the quotes around it.
		const inner = JSON.stringify(text).slice(1, -1);
		const found = sql.all<{ rowid: number; text: string }>(
			`SELECT rowid, ${column} AS text FROM ${name} WHERE instr(lower(${column}), lower(?)) > 0`,
			inner,
		);
		for (const row of found) {
			sql.run(`UPDATE ${name} SET ${column} = ? WHERE rowid = ?`, withoutAddress(row.text, inner), row.rowid);
		}
	}
}

/** Rows of mailings that no message was made of: they keep the address they were given with. */
function eraseResults(sql: Sql, address: string): void {
	const found = sql.all<{ mailing_seq: number; n: number; to_email: string; error: string | null }>(
		`SELECT mailing_seq, n, to_email, error
		FROM mailing_results
		WHERE instr(lower(to_email || ' ' || coalesce(error, '')), lower(?)) > 0`,
		address,
	);
	for (const { mailing_seq, n, to_email, error } of found) {
		sql.run(
			'UPDATE mailing_results SET to_email = ?, error = ? WHERE mailing_seq = ? AND n = ?',
			withoutAddress(to_email, address),
			error === null ? null : withoutAddress(error, address),
			mailing_seq,
			n,
		);
	}
}

/** `ann@example.com` is no part of `joann@example.com` or `ann@example.com.au`, but may end a sentence. */
function withoutAddress(text: string, address: string): string {
	const escaped = address.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
	const whole = new RegExp(`(?<![-\\w.!#$%&'*+/=?^\`{|}~])${escaped}(?![-\\w]|\\.\\w)`, 'gi');
	return text.replace(whole, erasedAddress);
}
