import {
	type AcceptCounts,
	type CampaignResult,
	type CampaignStatus,
	campaignState,
	type ListCounts,
	sayLeftOut,
} from '../../../api/campaigns.js';
import type { DeliveryCounts } from '../../../api/counts.js';
import { microsPerMs } from '../../../api/datetime.js';
import { withoutValueOf } from '../../../api/refusals.js';
import { type Hint, joinHints, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { isMachine } from '../../frame/globals.js';
import type { Times } from '../../render/times.js';
import { counted, numberText } from '../../render/units.js';
import { rowError } from '../../verbs/address-faults.js';
import { isNews } from './draft.js';
import type { RunOptions } from './options.js';
import type { Selection } from './recipients.js';

/** Counts a message that another service accepted as sent, because that service reports no outcome. */
export function outcomesOf(messages: CampaignStatus['messages']): DeliveryCounts {
	const { accepted = 0, sent = accepted, deferred = 0, bounced = 0, failed = 0 } = messages;
	const { uncertain = 0, canceled = 0 } = messages;
	return { sent, deferred, bounced, failed, uncertain, canceled };
}

/** `sent 1,200, bounced 3`; for another service, which reports no outcomes, `accepted 1,200`. */
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
	return `limits delay the rest until ${at}; it stays queued if you stop waiting`;
}

export function noRecipients(of: string, leftOut: readonly string[]): UsageError {
	const [hint] = leftOut;
	return new UsageError(`${of} has no recipients; nothing was sent`, hint === undefined ? {} : { hint });
}

/** Throws `UsageError`. `found`: recipients before suppression. `stays`: how to continue a campaign that stays staged. */
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
			hint: joinHints([`--expect-count ${found} if that is right`, ...stays]),
		});
}

export async function howToContinue(cx: CommandContext, name: string): Promise<Hint> {
	const { local } = await cx.connection();
	const cancel = [mailctl('campaigns', 'cancel', name), ' drops what is not sent'];
	if (local !== null) return [mailctl('campaigns', 'resume', name), ' continues, ', cancel];
	return ['the server continues; ', mailctl('campaigns', 'get', name), ' shows the progress, ', cancel];
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

/** The code of a variable without a value, shared with every service that has campaigns. */
export const missingVariable = 'missing_variable';

export type Finding = Pick<CampaignResult, 'line' | 'to' | 'code'> & { text: string };

interface Kind {
	count: number;
	first: string[];
	line: string;
}

/** Texts that quote a value of their row are separate kinds, so limit the number of kinds. */
const mostKept = 1_000;
const mostKinds = 10;
const mostNamed = 3;

/** Recipients that cannot be sent to. People see a line per kind of error, machines a line per recipient. */
export class Findings {
	rejected = 0;
	#lacksValues = false;
	readonly #isEach: boolean;
	readonly #each: string[] = [];
	readonly #kinds = new Map<string, Kind>();

	constructor({ out }: Pick<CommandContext, 'out'>) {
		this.#isEach = isMachine(out.format);
	}

	/** `count`: recipients with this finding; 0 names a recipient that is already counted. */
	add(finding: Finding, count = 1): void {
		const { line, to, code } = finding;
		this.rejected += count;
		this.#lacksValues ||= code === missingVariable;
		const name = [line === null ? '' : `line ${line}`, to].filter((part) => part !== '').join(' ');
		if (this.#isEach && name !== '') this.#each.push(lineOf(finding));
		for (const label of labelsOf(finding)) {
			const kind = this.#kinds.get(label) ?? { count: 0, first: [], line: '' };
			kind.count += count;
			if (kind.count > 0 && this.#kinds.size < mostKept) this.#kinds.set(label, kind);
			if (name === '' || kind.first.length >= mostNamed) continue;
			kind.first.push(name);
			kind.line ||= lineOf(finding);
		}
	}

	/** `errors`: the first errors, which name their recipients. */
	addOfLists(reasons: Reasons, errors: readonly string[]): void {
		const code = missingVariable;
		for (const { detail, count } of reasons.filter((one) => one.code === code))
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
		// Mark the variables as reported, because a later warning would repeat them.
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

function labelsOf({ to, code, text }: Omit<Finding, 'line'>): string[] {
	const names = code === missingVariable ? withoutValueOf(text) : [];
	if (code === missingVariable)
		return names.length === 0 ? ['no value for a variable'] : names.map((name) => `no value for #${name}#`);
	const told = rowError({ code, error: text }, to).replace(/\.$/, '');
	return [to !== '' && told.startsWith(to) ? told.slice(to.length).replace(/^:? /, '') : told];
}

function lineOf({ line, to, code, text }: Finding): string {
	const place = line === null ? '' : `line ${line}: `;
	const told = rowError({ code, error: text }, to);
	return to === '' || told.includes(to) ? `${place}${told}` : `${place}${to}: ${told}`;
}
