/**
 * Reports a campaign: its counts, the recipients that cannot be sent to, and the outcome of each message.
 * `--results FILE` writes the outcomes as CSV. It replaces only results of the same campaign, so that a send never
 * overwrites its input.
 */

import { open, stat } from 'node:fs/promises';
import {
	type AcceptCounts,
	type Campaign,
	type CampaignResult,
	type CampaignStatus,
	type Campaigns,
	campaignState,
	isOfCalls,
	type LeavingOut,
	type ListCounts,
	sayLeftOut,
} from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import type { DeliveryCounts } from '../../../api/counts.js';
import { microsPerMs } from '../../../api/datetime.js';
import { systemReason } from '../../../api/errors.js';
import { iterateSlices } from '../../../api/pages.js';
import type { Message, Uuid } from '../../../api/records.js';
import { withoutValueOf } from '../../../api/refusals.js';
import { TableError } from '../../../tables/finding.js';
import { createOutputFile, writeOutputFile } from '../../../tables/output-file.js';
import { type Hint, joinHints, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { classify, exits, hinted } from '../../frame/exit.js';
import { isMachine } from '../../frame/globals.js';
import { given } from '../../frame/values.js';
import { csvCell } from '../../render/out.js';
import type { Times } from '../../render/times.js';
import { counted, numberText } from '../../render/units.js';
import { rowError } from '../../verbs/address-faults.js';
import { walk } from '../../verbs/listing.js';
import { isNews } from './draft.js';
import type { RunOptions } from './options.js';
import type { CampaignPlace } from './place.js';
import type { Selection } from './recipients.js';

/** Counts the accepted messages of another service as `sent`, because that service reports no outcomes. */
export function outcomesOf(messages: CampaignStatus['messages']): DeliveryCounts {
	const { accepted = 0, sent = accepted, deferred = 0, bounced = 0, failed = 0 } = messages;
	const { uncertain = 0, canceled = 0 } = messages;
	return { sent, deferred, bounced, failed, uncertain, canceled };
}

export function sayOutcomes(messages: CampaignStatus['messages']): string {
	return sentenceOf(outcomesOf(messages), messages.accepted === undefined ? 'sent' : 'accepted');
}

export function sentenceOf({ sent, ...others }: DeliveryCounts, word = 'sent'): string {
	return [`${word} ${numberText(sent)}`, ...nonZero(others, (name, count) => `${name} ${count}`)].join(', ');
}

export function troublesOf({ bounced, failed, deferred }: DeliveryCounts): string {
	return nonZero({ bounced, failed, deferred }, (name, count) => `${count} ${name}`).join(', ');
}

function nonZero(counts: Readonly<Record<string, number>>, say: (name: string, count: string) => string) {
	return Object.entries(counts).flatMap(([name, count]) => (count > 0 ? say(name, numberText(count)) : []));
}

/** Counts messages without an outcome. A deferral counts as an outcome here, although a worker retries the message. */
export function waitingOf({ staged = 0, queued = 0, leased = 0 }: CampaignStatus['messages']): number {
	return staged + queued + leased;
}

export function settledOf(counts: DeliveryCounts): number {
	return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export function limitedUntil(until: Date, { moment }: Times): string {
	const at = moment(until.getTime() * microsPerMs);
	return `a limit delays the other messages until ${at}; they stay queued if you stop waiting`;
}

export function noRecipients(of: string, leftOut: readonly string[]): UsageError {
	const [hint] = leftOut;
	return new UsageError(`${of} has no recipients; nothing was sent`, hint === undefined ? {} : { hint });
}

/** `found` includes suppressed recipients. `stays` says that the campaign stays staged, and how to cancel it. */
export function assertExpected(
	found: number,
	of: string,
	{ expectCount, maxRecipients }: RunOptions,
	stays: readonly Hint[] = [],
): void {
	const people = counted(found, 'recipient');
	if (maxRecipients !== undefined && found > maxRecipients) {
		const hint = stays.length === 0 ? {} : { hint: joinHints(stays) };
		const most = numberText(maxRecipients);
		throw new UsageError(`${people} are more than --max-recipients ${most}; nothing was released`, hint);
	}
	if (expectCount !== undefined && expectCount !== found)
		throw new UsageError(`${of} has ${people}, not ${numberText(expectCount)}; nothing was released`, {
			hint: joinHints([`if ${found} is right, give --expect-count ${found}`, ...stays]),
		});
}

export async function howToContinue(cx: CommandContext, name: string): Promise<Hint> {
	const { local } = await cx.connection();
	const cancel = [mailctl('campaigns', 'cancel', name), ' drops the unsent messages'];
	const by = local === null ? 'server' : (await local.queue.hasWorker()) && 'worker';
	if (by === false) return [mailctl('campaigns', 'resume', name), ' continues, ', cancel];
	return [`the ${by} continues; `, mailctl('campaigns', 'get', name), ' shows the progress, ', cancel];
}

export async function sender(cx: CommandContext, ...options: readonly string[]): Promise<Hint> {
	const { local } = await cx.connection();
	return local === null ? 'the server' : mailctl('worker', ...options);
}

export function documentOf(campaign: CampaignStatus) {
	const { id, key, counts, messages, replies } = campaign;
	const state = campaignState(campaign);
	const recipients = recipientsOf(counts);
	return { name: key, id, state, recipients, ...counts, messages, ...(replies && { replies }) };
}

export function describe(counts: AcceptCounts): string {
	const { suppressed, rejected } = counts;
	const parts = [counted(recipientsOf(counts), 'recipient')];
	if (suppressed > 0) parts.push(`${numberText(suppressed)} of them suppressed`);
	if (rejected > 0) parts.push(`${numberText(rejected)} left out`);
	return parts.join(', ');
}

export function recipientsOf({ staged, suppressed }: AcceptCounts): number {
	return staged + suppressed;
}

type Reasons = ListCounts['reasons'];

export function reasonsOf(lists: readonly Pick<ListCounts, 'reasons'>[]): Reasons {
	const all = new Map<string, Reasons[number]>();
	for (const one of lists.flatMap(({ reasons }) => reasons)) {
		const key = `${one.code} ${one.detail}`;
		all.set(key, { ...one, count: one.count + (all.get(key)?.count ?? 0) });
	}
	return [...all.values()];
}

export function sayCounts(counts: readonly ListCounts[], { lists, names }: Selection): string[] {
	const leftOut = (reasons: Reasons) =>
		reasons.map((one) => `${numberText(one.count)} ${sayLeftOut(one, names)}`).join(', ');
	const all = leftOut(reasonsOf(counts));
	const each = counts.map(({ list_id, staged, suppressed, reasons }) => {
		const name = JSON.stringify(lists.find(({ id }) => id === list_id)?.name ?? '');
		const left = leftOut(reasons);
		const people = counted(staged + suppressed, 'recipient');
		return `list ${list_id} ${name}: ${people}${left === '' ? '' : `; left out: ${left}`}`;
	});
	return [...(all === '' ? [] : [`left out: ${all}`]), ...(counts.length < 2 ? [] : each)];
}

/** A campaign's results have this code for a recipient without a value for a variable. */
export const missingVariable = 'missing_variable';

export type Finding = Pick<CampaignResult, 'line' | 'to' | 'code'> & { text: string };

interface Kind {
	count: number;
	first: string[];
	line: string;
}

/** Limits the kinds of errors in memory. If the error text quotes a value, each row may add a kind. */
const mostKept = 1_000;
const mostKinds = 10;
const mostNamed = 3;

/** Recipients that cannot be sent to. JSON output names each one; other output has a line for each kind of error. */
export class Findings {
	rejected = 0;
	#lacksValues = false;
	readonly #isEach: boolean;
	readonly #each: string[] = [];
	readonly #kinds = new Map<string, Kind>();

	constructor({ out }: Pick<CommandContext, 'out'>) {
		this.#isEach = isMachine(out.format);
	}

	/** `count`: how many recipients have this finding. With 0, adds the name of a recipient without counting it again. */
	add({ line, to, code, text }: Finding, count = 1): void {
		this.rejected += count;
		this.#lacksValues ||= code === missingVariable;
		const told = rowError({ code, error: text }, to);
		const place = line === null ? [] : [`line ${line}`];
		const name = [...place, ...(to === '' ? [] : [to])].join(' ');
		const whole = [...place, ...(told.includes(to) ? [] : [to]), told].join(': ');
		if (this.#isEach && name !== '') this.#each.push(whole);
		for (const label of code === missingVariable ? valueLabels(text) : [labelOf(told, to)]) {
			const kind = this.#kinds.get(label) ?? { count: 0, first: [], line: '' };
			kind.count += count;
			if (kind.count > 0 && this.#kinds.size < mostKept) this.#kinds.set(label, kind);
			if (name === '' || kind.first.length >= mostNamed) continue;
			kind.first.push(name);
			kind.line ||= whole;
		}
	}

	/** `errors`: the first errors. Each begins with the recipient's address. */
	addOfLists(lists: readonly ListCounts[], errors: readonly string[]): void {
		const code = missingVariable;
		for (const { detail, count } of reasonsOf(lists).filter((one) => one.code === code))
			this.add({ line: null, to: '', code, text: detail ?? '' }, count);
		for (const text of errors) this.add({ line: null, to: text.split(': ', 1)[0] ?? '', code, text }, 0);
	}

	refusal(of: number, kept: string | null = null): UsageError {
		const have = this.rejected === 1 ? 'has an error' : 'have errors';
		const message = `${counted(this.rejected, 'recipient')} ${have}; nothing was released`;
		return new UsageError(message, { details: this.#lines(of), hint: this.wayOut(kept) });
	}

	async warn(cx: CommandContext, of: number, skipInvalid: boolean): Promise<void> {
		for (const line of this.#lines(of)) await cx.warn(skipInvalid ? `left out: ${line}` : line);
		// Mark the variables as reported, so that no later warning repeats them.
		for (const name of [...this.#kinds.keys()].flatMap(withoutValueOf)) isNews(cx, `#${name}#`);
	}

	wayOut(kept: string | null = null): Hint {
		const defaults = '; give a variable a default, #name|friend#, or add --no-strict-vars';
		const how = `correct them, or add --skip-invalid${this.#lacksValues ? defaults : ''}`;
		if (kept === null) return how;
		return [`${how}; to change the content, first run `, mailctl('campaigns', 'cancel', kept)];
	}

	#lines(of: number): readonly string[] {
		if (this.#isEach) return cut(this.#each, this.rejected);
		const kinds = [...this.#kinds].sort(([, a], [, b]) => b.count - a.count);
		const lines = [...new Set(kinds.map(([label, kind]) => kindLine(label, kind, of)))];
		return cut(lines.slice(0, mostKinds), lines.length);
	}
}

function cut(lines: readonly string[], all: number): string[] {
	const left = all - lines.length;
	return left <= 0 ? [...lines] : [...lines, `and ${numberText(left)} more`];
}

function kindLine(label: string, { count, first, line }: Kind, of: number): string {
	if (count === 1 && line !== '') return line;
	const named = first.length === 0 ? '' : ` (the first: ${first.join(', ')})`;
	return `${label}: ${numberText(count)} of ${counted(of, 'recipient')}${named}`;
}

function valueLabels(text: string): string[] {
	const names = withoutValueOf(text);
	return names.length === 0 ? ['no value for a variable'] : names.map((name) => `no value for #${name}#`);
}

function labelOf(told: string, to: string): string {
	const label = told.replace(/\.$/, '');
	return to !== '' && label.startsWith(to) ? label.slice(to.length).replace(/^:? /, '') : label;
}

const resultColumns = [
	...(['line', 'to', 'id', 'state', 'code', 'text', 'attempts', 'campaign_unique_id'] as const),
];
const head = `${resultColumns.join(',')}\r\n`;

export interface ResultLine extends Omit<CampaignResult, 'state'> {
	state: CampaignResult['state'] | 'left_out';
	campaign_unique_id: Uuid | null;
}

/** Lines are written in blocks, because a million single writes would cost a million system calls. */
const blockLength = 64 * 1024;

export async function writeLines(
	cx: CommandContext,
	path: string,
	lines: AsyncIterable<ResultLine>,
	later?: readonly Hint[],
): Promise<void> {
	async function* blocks() {
		let text = head;
		for await (const line of lines) {
			text += `${resultColumns.map((name) => csvCell(line[name])).join(',')}\r\n`;
			if (text.length < blockLength) continue;
			yield text;
			text = '';
		}
		yield text;
	}
	await writeOutputFile(path, 'replace', blocks()).catch((cause: unknown) => {
		const isOfDisk = cause instanceof Error && 'syscall' in cause;
		const message = `${path} cannot be written: ${systemReason(cause)}`;
		const error = isOfDisk ? new CliError('disk', exits.disk, message, { cause }) : cause;
		throw later === undefined ? error : hinted(error, [['only the results are missing: ', ...later]]);
	});
	await cx.note(`results are in ${path}`);
}

export async function writeMessages(cx: CommandContext, path: string, ids: readonly Uuid[]): Promise<void> {
	const messages = await need(await cx.api(), 'messages');
	async function* lines(): AsyncGenerator<ResultLine> {
		for (const id of ids) yield lineOf(await messages.get(id, { signal: signalOfEnd(cx) }));
	}
	const [first = 'ID'] = ids;
	const look = mailctl('messages', 'get', ids.length === 1 ? first : 'ID');
	await writeLines(cx, path, lines(), [look, ' shows the outcome']);
}

export async function* resultLines(
	cx: CommandContext,
	place: CampaignPlace,
	campaign: Campaign,
): AsyncGenerator<ResultLine> {
	const { id, list_id, position } = campaign;
	const isOverList = list_id !== null && position === 0;
	if (place.isForeign || !(isOverList || isOfCalls(campaign))) yield* rowLines(cx, place, id);
	else {
		yield* messageLines(cx, id);
		yield* leftOutLines(cx, id);
	}
}

const endMs = 10_000;

/** An interrupted command still writes its results, within a time limit. */
function signalOfEnd({ signal }: Pick<CommandContext, 'signal'>): AbortSignal {
	return signal.aborted ? AbortSignal.timeout(endMs) : signal;
}

/** Returns the reply's code (RFC 5321 s.4.2); null for a text without a code. */
function replyCode(text: string | null): string | null {
	return /^([2-5]\d\d)\b/.exec(text ?? '')?.[1] ?? null;
}

function lineOf({ to, id, state, last_reply, attempts, campaign_unique_id }: Message): ResultLine {
	const reply = { code: replyCode(last_reply), text: last_reply };
	return { line: null, to, id, state, ...reply, attempts, campaign_unique_id };
}

export async function* messageLines(
	cx: CommandContext,
	campaign_unique_id: Uuid,
	limit?: number,
): AsyncGenerator<ResultLine> {
	const messages = await need(await cx.api(), 'messages');
	const how = { signal: signalOfEnd(cx), ...given({ limit }) };
	for await (const message of walk(messages, { campaign_unique_id }, how)) yield lineOf(message);
}

/** Includes rejected rows. */
export async function* rowLines(cx: CommandContext, { campaigns, isForeign }: CampaignPlace, id: Uuid) {
	for await (const result of eachResult(cx, campaigns, id)) {
		const text = result.text && rowError({ code: result.code, error: result.text }, result.to);
		const code = result.code ?? replyCode(text);
		yield { ...result, text, code, campaign_unique_id: isForeign ? null : id };
	}
}

async function* leftOutLines(cx: CommandContext, id: Uuid): AsyncGenerator<ResultLine> {
	const api = await cx.api();
	const { audiences, campaigns } = (await api.capabilities()).ext;
	if (audiences === undefined) return;
	const signal = signalOfEnd(cx);
	const known = new Map<string, string>();
	const nameOf = async (code: LeavingOut['code'], detail: string): Promise<string | undefined> => {
		if (code === 'excluded') return (await api.lists.get(Number(detail)).catch(() => null))?.name;
		if (code !== 'opened' && code !== 'not_opened') return undefined;
		return (await campaigns?.page({ id: detail, page_size: 1 }))?.results[0]?.key;
	};
	const names = {
		list: (list: string) => JSON.stringify(known.get(list) ?? list),
		campaign: (campaign: string) => known.get(campaign) ?? campaign,
	};
	for await (const { results } of iterateSlices(0, (after) => audiences.leftOut(id, { after }, { signal })))
		for (const { to, code, detail } of results) {
			if (detail !== null && !known.has(detail)) known.set(detail, (await nameOf(code, detail)) ?? detail);
			const state = code === 'suppressed' ? code : code === missingVariable ? 'rejected' : 'left_out';
			const text = sayLeftOut({ code, detail }, names);
			yield { line: null, to, id: null, state, code, text, attempts: 0, campaign_unique_id: id };
		}
}

export async function* eachResult(
	cx: CommandContext,
	campaigns: Campaigns,
	id: string,
	only: { only?: 'findings' } = {},
): AsyncGenerator<CampaignResult, void, undefined> {
	const signal = signalOfEnd(cx);
	const pages = iterateSlices(0, (after) => campaigns.results(id, { ...only, after }, { signal }));
	for await (const { results } of pages) yield* results;
}

type OfCampaign = { place: CampaignPlace; id: Uuid } | null;

/**
 * Checks before the send that the file can be written. Allows an empty file, a pipe, a device and the results of
 * `campaign`. Throws `UsageError`.
 */
export async function assertResults(
	path: string | undefined,
	campaign: OfCampaign,
	flag: '--results' | '--save' = '--results',
): Promise<void> {
	if (path === undefined) return;
	const end = flag === '--results' ? '; nothing was sent' : '';
	if (path === '-')
		throw new UsageError(`${flag} needs a file: standard output has the result of the command`);
	const there = await stat(path).catch(() => null);
	// Do not open a pipe here: closing it would end its reader's input.
	if (there !== null && !there.isFile() && !there.isDirectory()) return;
	if (there?.isFile() && there.size > 0 && !(await isOfCampaign(path, campaign)))
		throw new UsageError(`${flag}: ${path} exists already${end}`);
	try {
		await (await createOutputFile(path, 'replace')).discard();
	} catch (cause) {
		const what =
			cause instanceof TableError ? cause.message : `${path} cannot be written: ${systemReason(cause)}`;
		const { hint } = classify(cause);
		throw new UsageError(`${flag}: ${what}${end}`, { ...(hint !== null && { hint }), cause });
	}
}

async function isOfCampaign(path: string, campaign: OfCampaign): Promise<boolean> {
	const file = await open(path).catch(() => null);
	if (file === null) return false;
	try {
		const { buffer, bytesRead } = await file.read(Buffer.alloc(blockLength), 0, blockLength, 0);
		const text = buffer.toString('utf8', 0, bytesRead);
		if (text === head || campaign === null) return text === head;
		const { place, id } = campaign;
		// The results of another service do not name the campaign, so look for the ids of its first messages.
		const marks = place.isForeign
			? (await place.campaigns.results(id, {})).results.map((one) => `,${one.id},`)
			: [`,${id}\r\n`];
		return text.startsWith(head) && marks.some((mark) => text.includes(mark));
	} finally {
		await file.close();
	}
}
