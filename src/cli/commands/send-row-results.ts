/** What became of the rows of a job: findings to show, and `--results FILE`, a line for each of them. */
import type { Mailings } from '../../api/capabilities.js';
import type { MailingResult } from '../../api/mailings.js';
import type { CommandContext } from '../context.js';
import { csvCell } from '../render/cells.js';
import { writeCsv } from './send-results.js';

/** More is for a file: nobody reads them on a screen. */
const mostFindings = 1_000;

/** `line 3: ann@: to: Enter a valid email address.`, in the order of rows; at most 1,000. */
export async function findingsOf(cx: CommandContext, mailings: Mailings, id: string): Promise<string[]> {
	const { results } = await mailings.results(
		id,
		{ only: 'findings', limit: mostFindings },
		{ signal: cx.signal },
	);
	return results.map(sentenceOf);
}

/** Of the rows there is a message for. */
export async function firstAddresses(
	cx: CommandContext,
	mailings: Mailings,
	id: string,
	most: number,
): Promise<string[]> {
	const shown: string[] = [];
	if (most === 0) return shown;
	for await (const result of eachResult(cx, mailings, id)) {
		if (result.state !== 'rejected' && result.state !== 'suppressed') shown.push(result.to);
		if (shown.length >= most) break;
	}
	return shown;
}

const header = ['line', 'to', 'id', 'state', 'code', 'text', 'attempts', 'campaign_unique_id'] as const;

/** Every row of the source, whichever run staged and sent it. */
export async function writeRowResults(
	cx: CommandContext,
	mailings: Mailings,
	id: string,
	path: string,
): Promise<void> {
	async function* lines(): AsyncGenerator<string> {
		for await (const result of eachResult(cx, mailings, id)) {
			const row = { ...result, code: codeOf(result), campaign_unique_id: id };
			yield header.map((key) => csvCell(row[key])).join(',');
		}
	}
	await writeCsv(cx, path, header.join(','), lines());
}

/** A reject's code, or that of the last reply (RFC 5321 s.4.2). */
function codeOf({ code, text }: MailingResult): string | null {
	return code ?? /^([2-5]\d\d)\b/.exec(text ?? '')?.[1] ?? null;
}

/** All of them, in the order of rows, a page at a time. */
export async function* eachResult(
	cx: CommandContext,
	mailings: Mailings,
	id: string,
): AsyncGenerator<MailingResult, void, undefined> {
	let after: number | null = 0;
	while (after !== null) {
		const page = await mailings.results(id, { after }, { signal: cx.signal });
		yield* page.results;
		after = page.next;
	}
}

/** The engine's words name the address by themselves where they are about it. */
function sentenceOf({ line, to, text }: MailingResult): string {
	const place = line === null ? '' : `line ${line}: `;
	const words = text ?? '';
	return to === '' || words.includes(to) ? `${place}${words}` : `${place}${to}: ${words}`;
}
