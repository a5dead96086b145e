/**
 * `--results FILE`: what became of each message, as CSV, complete or not there at all. The same columns everywhere; never
 * over what a send reads, and over no file but one of the same campaign.
 */

import { open, stat } from 'node:fs/promises';
import { type Campaign, type CampaignResult, type Campaigns, isOfCalls } from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { systemReason } from '../../../api/errors.js';
import { iterateSlices } from '../../../api/pages.js';
import type { Message, Uuid } from '../../../api/records.js';
import { TableError } from '../../../tables/finding.js';
import { createOutputFile } from '../../../tables/output-file.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { classify, hinted } from '../../frame/exit.js';
import { csvCell } from '../../render/lines.js';
import { rowError } from '../../verbs/address-faults.js';
import { walk } from '../../verbs/listing.js';
import { type Findings, missingVariable } from './findings.js';
import { leftOutPeople } from './left-out.js';
import type { SendOptions } from './options.js';
import type { CampaignPlace } from './place.js';

/** `line` is empty where recipients come from no file; `code` and `text`: why there is no message, or the last reply. */
const resultColumns = [
	'line',
	'to',
	'id',
	'state',
	'code',
	'text',
	'attempts',
	'campaign_unique_id',
] as const;

/** A line of results. */
export interface ResultLine extends Omit<CampaignResult, 'state'> {
	/** `left_out`: a subscriber of its lists that its audience leaves out. */
	state: CampaignResult['state'] | 'left_out';
	campaign_unique_id: Uuid | null;
}

/** Whether what is staged still can be sent; where it cannot, it is told as canceled. */
export interface ResultsHow {
	isDropped: boolean;
	flag?: ResultsFlag;
}

/** The option that named the file; `--save` is that of a command that sends nothing. */
type ResultsFlag = '--results' | '--save';

/** A write a line would cost a million system calls. */
const blockLength = 64 * 1024;

/** The outcome of each message. */
export async function writeResults(
	cx: CommandContext,
	path: string,
	which: { ids: readonly Uuid[] } | { campaign: Uuid },
	how: ResultsHow = { isDropped: false },
): Promise<void> {
	async function* lines(): AsyncGenerator<ResultLine> {
		for await (const message of messagesOf(cx, which)) yield lineOf(message);
	}
	try {
		await writeLines(cx, path, lines(), how);
	} catch (error) {
		// A campaign's results have a command of their own.
		throw 'ids' in which ? hinted(error, [wayToMessages(which.ids)]) : error;
	}
}

function wayToMessages([first = 'ID', ...others]: readonly Uuid[]): Hint {
	const look = mailctl('messages', 'get', others.length === 0 ? first : 'ID');
	return ['what was sent is sent: ', look, ' says what became of it'];
}

/** A reader never sees half of it. An older file is replaced. */
export async function writeLines(
	cx: CommandContext,
	path: string,
	lines: AsyncIterable<ResultLine>,
	{ isDropped, flag = '--results' }: ResultsHow,
): Promise<void> {
	try {
		await write(path, lines, (line) => (isDropped ? told(line) : line));
	} catch (cause) {
		if (!(cause instanceof Error) || !('syscall' in cause)) throw cause;
		throw new CliError('disk', 74, `${flag}: ${path} cannot be written: ${systemReason(cause)}`, { cause });
	}
	await cx.note(`results are in ${path}`);
}

/** A command that was stopped still says what it knows; it must not take for ever over it. */
export function signalOfEnd({ signal }: Pick<CommandContext, 'signal'>): AbortSignal {
	return signal.aborted ? AbortSignal.timeout(endMs) : signal;
}

const endMs = 10_000;

/** The reply's code (RFC 5321 s.4.2); null for words without one. */
function replyCode(text: string | null): string | null {
	return /^([2-5]\d\d)\b/.exec(text ?? '')?.[1] ?? null;
}

async function write(
	path: string,
	lines: AsyncIterable<ResultLine>,
	toldAs: (line: ResultLine) => ResultLine,
): Promise<void> {
	const file = await createOutputFile(path, 'replace');
	try {
		let text = `${resultColumns.join(',')}\r\n`;
		for await (const line of lines) {
			const cells = cellsOf(toldAs(line));
			text += `${cells.map(csvCell).join(',')}\r\n`;
			if (text.length < blockLength) continue;
			await file.write(text);
			text = '';
		}
		await file.write(text);
		await file.finish();
	} finally {
		await file.discard();
	}
}

/** In the order of the columns. */
function cellsOf({ line, to, id, state, code, text, attempts, campaign_unique_id }: ResultLine): unknown[] {
	return [line, to, id, state, code, text, attempts, campaign_unique_id];
}

/** Its message is gone, and so is its number. */
function told(line: ResultLine): ResultLine {
	return line.state === 'staged' ? { ...line, state: 'canceled', id: null } : line;
}

function lineOf({ to, id, state, last_reply, attempts, campaign_unique_id }: Message): ResultLine {
	const reply = { code: replyCode(last_reply), text: last_reply };
	return { line: null, to, id, state, ...reply, attempts, campaign_unique_id };
}

async function* messagesOf(
	cx: CommandContext,
	which: { ids: readonly Uuid[] } | { campaign: Uuid },
): AsyncGenerator<Message> {
	const messages = await need(await cx.api(), 'messages');
	const signal = signalOfEnd(cx);
	if ('campaign' in which) {
		yield* walk(messages, { campaign_unique_id: which.campaign }, { signal });
		return;
	}
	for (const id of which.ids) yield await messages.get(id, { signal });
}

/** Those of rows, in their order. */
export async function readFindings(
	cx: CommandContext,
	{ campaigns, id }: { campaigns: Campaigns; id: Uuid },
	into: Findings,
): Promise<void> {
	const pages = iterateSlices(0, (after) =>
		campaigns.results(id, { only: 'findings', after, limit: mostAtOnce }, { signal: cx.signal }),
	);
	for await (const { results } of pages)
		for (const result of results) into.add({ ...result, text: result.text ?? '' });
}

const mostAtOnce = 1_000;

export async function firstAddresses(
	cx: CommandContext,
	campaigns: Campaigns,
	id: string,
	most: number,
): Promise<string[]> {
	const shown: string[] = [];
	if (most === 0) return shown;
	for await (const result of eachResult(cx, campaigns, id)) {
		if (result.state !== 'rejected' && result.state !== 'suppressed') shown.push(result.to);
		if (shown.length >= most) break;
	}
	return shown;
}

/** Every row of the source, whichever run staged and sent it. */
export async function writeRowResults(
	cx: CommandContext,
	{ place: { campaigns, isForeign }, id }: { place: CampaignPlace; id: Uuid },
	path: string,
	how: ResultsHow,
): Promise<void> {
	async function* lines(): AsyncGenerator<ResultLine> {
		for await (const result of eachResult(cx, campaigns, id)) yield lineOfRow(result, isForeign ? null : id);
	}
	await writeLines(cx, path, lines(), how);
}

/** Of any campaign: by its rows, or its messages and who was left out, where it has a list or is of send calls alone. */
export async function* resultLines(
	cx: CommandContext,
	{ campaigns, isForeign }: CampaignPlace,
	campaign: Campaign,
): AsyncGenerator<ResultLine> {
	const { id, list_id, position } = campaign;
	if (!isForeign && ((list_id !== null && position === 0) || isOfCalls(campaign))) {
		for await (const message of messagesOf(cx, { campaign: id })) yield lineOf(message);
		for await (const { to, code, text } of leftOutPeople(cx, id, signalOfEnd(cx))) {
			const state = leftOutStates.get(code) ?? 'left_out';
			yield { line: null, to, id: null, state, code, text, attempts: 0, campaign_unique_id: id };
		}
		return;
	}
	for await (const result of eachResult(cx, campaigns, id)) yield lineOfRow(result, isForeign ? null : id);
}

const leftOutStates: ReadonlyMap<string, ResultLine['state']> = new Map([
	['suppressed', 'suppressed'],
	[missingVariable, 'rejected'],
]);

function lineOfRow(result: CampaignResult, campaign_unique_id: Uuid | null): ResultLine {
	const { code, to } = result;
	const text = result.text && rowError({ code, error: result.text }, to);
	return { ...result, text, code: code ?? replyCode(text), campaign_unique_id };
}

/** All of them, in the order of rows, a page at a time. */
export async function* eachResult(
	cx: CommandContext,
	campaigns: Campaigns,
	id: string,
): AsyncGenerator<CampaignResult, void, undefined> {
	const signal = signalOfEnd(cx);
	const pages = iterateSlices(0, (after) => campaigns.results(id, { after }, { signal }));
	for await (const { results } of pages) yield* results;
}

/** What is known before anything is staged. */
interface ResultsOf {
	/** Paths of what this send reads. */
	inputs: readonly string[];
	/** Texts that only lines about this campaign hold, if it was begun before; asked only when there is a file of that name. */
	marks(): Promise<readonly string[]>;
	flag?: ResultsFlag;
}

/**
 * Refuses before anything is sent: afterwards what became of it could not be told. An empty file, a pipe and a
 * device are written to, and so is what a link leads to. Throws `UsageError`.
 */
export async function assertResults(path: string | undefined, of: ResultsOf): Promise<void> {
	if (path === undefined) return;
	const { flag = '--results' } = of;
	const end = flag === '--results' ? '; nothing was sent' : '';
	if (path === '-') throw new UsageError(`${flag} takes a file: standard output has the answer`);
	const there = await stat(path).catch(() => null);
	// A pipe is not opened here, but once, to write the results: its reader takes a close for the end.
	if (there !== null && !there.isFile() && !there.isDirectory()) return;
	if (there?.isFile()) {
		await assertNoInput(path, of.inputs);
		if (there.size > 0 && !((await isOfJob(path, await of.marks())) || (await hasNothingSent(path))))
			throw new UsageError(`${flag}: ${path} is there already${end}`, {
				hint: 'give another file, or move that one away',
			});
	}
	try {
		await (await createOutputFile(path, 'replace')).discard();
	} catch (cause) {
		const what =
			cause instanceof TableError ? cause.message : `${path} cannot be written: ${systemReason(cause)}`;
		const { hint } = classify(cause);
		throw new UsageError(`${flag}: ${what}${end}`, { ...(hint !== null && { hint }), cause });
	}
}

/** The files that options name to read from. */
export function inputsOf({
	csv,
	batch,
	textFile,
	htmlFile,
	contextFile,
}: Pick<SendOptions, 'csv' | 'batch' | 'textFile' | 'htmlFile' | 'contextFile'>): string[] {
	const paths = [csv, batch, textFile?.path, htmlFile?.path, contextFile?.path];
	return paths.filter((path) => typeof path === 'string');
}

/** Each line ends with the campaign; where there is none, the service's names of the first messages stand for it. */
export async function marksOf({ isForeign, campaigns }: CampaignPlace, id: Uuid): Promise<readonly string[]> {
	if (!isForeign) return [`,${id}\r\n`];
	const { results } = await campaigns.results(id, {});
	return results.flatMap((result) => (result.id === null ? [] : [`,${result.id},`]));
}

/** However it is spelled, and through whatever link. */
async function assertNoInput(path: string, inputs: readonly string[]): Promise<void> {
	const target = await stat(path);
	for (const input of inputs) {
		const read = await stat(input).catch(() => null);
		if (read !== null && read.dev === target.dev && read.ino === target.ino)
			throw new UsageError(`--results: ${path} is what this send reads; nothing was sent`, {
				hint: 'give another file',
			});
	}
}

/** Longer than a line of results is. */
const lookedAt = 64 * 1024;

/** One without lines has nothing to lose. */
async function isOfJob(path: string, marks: readonly string[]): Promise<boolean> {
	const file = await open(path).catch(() => null);
	if (file === null) return false;
	try {
		const { buffer, bytesRead } = await file.read(Buffer.alloc(lookedAt), 0, lookedAt, 0);
		const text = buffer.toString('utf8', 0, bytesRead);
		const head = `${resultColumns.join(',')}\r\n`;
		return text === head || (text.startsWith(head) && marks.some((mark) => text.includes(mark)));
	} finally {
		await file.close();
	}
}

const unsent: ReadonlySet<string> = new Set<ResultLine['state']>([
	'canceled',
	'rejected',
	'suppressed',
	'left_out',
]);

/** Results of a campaign that was refused and dropped: the mended one, which has its name, replaces them. */
async function hasNothingSent(path: string): Promise<boolean> {
	const { openTable } = await import('../../../tables/read-table.js');
	const table = await openTable(path, { encoding: 'utf-8', delimiter: ',' }).catch(() => null);
	if (table === null) return false;
	try {
		if (table.header.join() !== resultColumns.join()) return false;
		const [id, state] = [resultColumns.indexOf('id'), resultColumns.indexOf('state')];
		for await (const row of table.rows)
			if (row.kind !== 'row' || row.cells[id] !== '' || !unsent.has(row.cells[state] ?? '')) return false;
		return true;
	} finally {
		await table.close();
	}
}
