/** What became of the rows of a job: findings to show, and `--results FILE`, a line for each of them. */
import type { Mailings } from '../../../api/capabilities.js';
import type { MailingResult, MailingResults } from '../../../api/mailings.js';
import type { Uuid } from '../../../api/records.js';
import type { CommandContext } from '../../context.js';
import { missingVariable } from './findings.js';
import { type ResultLine, type ResultsHow, replyCode, signalOfEnd, writeLines } from './results.js';

/** `line 3: ann@: to: Enter a valid email address.`, in the order of rows, at most so many. */
export async function findingsOf(
	cx: CommandContext,
	{ mailings, id }: { mailings: Mailings; id: Uuid },
	most: number,
): Promise<string[]> {
	const found: string[] = [];
	let after: number | null = 0;
	while (after !== null && found.length < most) {
		const limit = Math.min(mostAtOnce, most - found.length);
		const request = { only: 'findings', after, limit } as const;
		const page: MailingResults = await mailings.results(id, request, { signal: cx.signal });
		found.push(...page.results.map(sentenceOf));
		after = page.next;
	}
	return found;
}

/** Whether any of the findings is a variable without a value. */
export async function lacksValues(
	cx: CommandContext,
	{ mailings, id }: { mailings: Mailings; id: Uuid },
): Promise<boolean> {
	let after: number | null = 0;
	while (after !== null) {
		const request = { only: 'findings', after, limit: mostAtOnce } as const;
		const page: MailingResults = await mailings.results(id, request, { signal: cx.signal });
		if (page.results.some(({ code }) => code === missingVariable)) return true;
		after = page.next;
	}
	return false;
}

const mostAtOnce = 1_000;

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

/** Every row of the source, whichever run staged and sent it. */
export async function writeRowResults(
	cx: CommandContext,
	{ mailings, id }: { mailings: Mailings; id: Uuid },
	path: string,
	how: ResultsHow,
): Promise<void> {
	async function* lines(): AsyncGenerator<ResultLine> {
		for await (const result of eachResult(cx, mailings, id)) {
			const { code, text } = result;
			yield { ...result, code: code ?? replyCode(text), campaign_unique_id: id };
		}
	}
	await writeLines(cx, path, lines(), how);
}

/** All of them, in the order of rows, a page at a time. */
export async function* eachResult(
	cx: CommandContext,
	mailings: Mailings,
	id: string,
): AsyncGenerator<MailingResult, void, undefined> {
	const signal = signalOfEnd(cx);
	let after: number | null = 0;
	while (after !== null) {
		const page = await mailings.results(id, { after }, { signal });
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
