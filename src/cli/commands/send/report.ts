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
import { type Hint, joinHints, mailctl, type OwnCommand } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { isMachine } from '../../frame/globals.js';
import type { Times } from '../../render/times.js';
import { counted, numberText } from '../../render/units.js';
import { rowError } from '../../verbs/address-faults.js';
import { isNews } from './lint.js';
import type { SendOptions } from './options.js';
import type { Selection } from './recipients.js';

/** `accepted` stands in for `sent` where a service took the messages and does not tell what became of them. */
export type Outcomes = Omit<DeliveryCounts, 'sent'> & ({ sent: number } | { accepted: number });

export function outcomesOf(messages: CampaignStatus['messages']): Outcomes {
	const { accepted, sent = 0, deferred = 0, bounced = 0, failed = 0, uncertain = 0, canceled = 0 } = messages;
	const others = { deferred, bounced, failed, uncertain, canceled };
	return accepted === undefined ? { sent, ...others } : { accepted, ...others };
}

export function asDelivered(outcomes: Outcomes): DeliveryCounts {
	if ('sent' in outcomes) return outcomes;
	const { accepted: sent, ...others } = outcomes;
	return { sent, ...others };
}

export function progressOf(counts: Outcomes, before: Outcomes | null): string {
	const { sent, ...others } = asDelivered(counts);
	const now = before === null ? '' : `, ${numberText(sent - asDelivered(before).sent)} since it was resumed`;
	const first = `${numberText(sent)} ${'sent' in counts ? 'sent' : 'accepted'}${now}`;
	return [first, ...nonZero(others).map(([name, count]) => `${count} ${name}`)].join(', ');
}

export function sentenceOf(counts: Outcomes): string {
	const parts = Object.entries(counts).filter(([, count], index) => count > 0 || index === 0);
	return parts.map(([name, count]) => `${name} ${numberText(count)}`).join(', ');
}

export function troublesOf({ bounced, failed, deferred }: DeliveryCounts): string {
	return nonZero({ bounced, failed, deferred })
		.map(([name, count]) => `${count} ${name}`)
		.join(', ');
}

function nonZero(counts: Readonly<Record<string, number>>): [name: string, count: string][] {
	return Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [[name, numberText(count)]] : []));
}

/** Messages without an outcome; deferred ones have one, and are tried again. */
export function waitingOf({ staged = 0, queued = 0, leased = 0 }: CampaignStatus['messages']): number {
	return staged + queued + leased;
}

export function settledOf(counts: DeliveryCounts): number {
	return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export function limitedUntil(until: Date, { moment }: Times): string {
	const at = moment(until.getTime() * microsPerMs);
	return `limits hold back what is left until ${at}; it is waited for, and stays queued when this is interrupted`;
}

/**
 * Throws `UsageError` for more recipients than are allowed, and for another number than is expected. `found`: recipients
 * before suppression. `stays`: how a campaign that stays staged goes on.
 */
export function assertExpected(
	found: number,
	where: string,
	{ expectCount, maxRecipients }: Pick<SendOptions, 'expectCount' | 'maxRecipients'>,
	stays: readonly Hint[] = [],
): void {
	const people = counted(found, 'recipient');
	if (maxRecipients !== undefined && found > maxRecipients) {
		const most = numberText(maxRecipients);
		throw new UsageError(`${people} are more than --max-recipients ${most}; nothing was released`, {
			...(stays.length > 0 && { hint: joinHints(stays) }),
		});
	}
	if (expectCount === undefined || expectCount === found) return;
	throw new UsageError(`${where} has ${people}, not ${numberText(expectCount)}; nothing was released`, {
		hint: joinHints([`--expect-count ${found} if that is right`, ...stays]),
	});
}

/** The campaign, and the `--rate` of this run: a later run does not know it. */
export interface GoingOn {
	name: string;
	rate?: string | undefined;
}

export async function saysWhoGoesOn(cx: CommandContext, { name, rate }: GoingOn): Promise<Hint> {
	const { local } = await cx.connection();
	const cancel = [mailctl('campaigns', 'cancel', name), ' drops what is not sent'];
	if (local === null) {
		const look = mailctl('campaigns', 'get', name);
		return ['the server goes on; ', look, ' shows how far it is, ', ...cancel];
	}
	const pace = rate === undefined ? [] : ['--rate', rate];
	return [mailctl('campaigns', 'resume', name, ...pace), ' goes on, ', cancel];
}

export interface Unreleased {
	name: string;
	source?: string | undefined;
}

export function waysToRelease({ name, source }: Unreleased): (string | OwnCommand)[] {
	const rest = source === undefined ? [] : ['--source', source];
	const resume = mailctl('campaigns', 'resume', name, ...rest);
	return [resume, ' goes on, ', mailctl('campaigns', 'cancel', name), ' drops it'];
}

export async function sender(cx: CommandContext, ...options: readonly string[]): Promise<Hint> {
	const { local } = await cx.connection();
	return local === null ? 'the server' : mailctl('worker', ...options);
}

export function documentOf(campaign: CampaignStatus) {
	const { id, key, counts, messages, replies } = campaign;
	return {
		name: key,
		id,
		state: campaignState(campaign),
		recipients: recipientsOf(counts),
		...counts,
		messages,
		...(replies && { replies }),
	};
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
	const sayReasons = (reasons: Reasons) =>
		reasons.map((one) => `${numberText(one.count)} ${sayLeftOut(one, names)}`).join(', ');
	const left = sayReasons(reasonsOf(counts));
	const each = counts.map(({ list_id, staged, suppressed, reasons }) => {
		const name = lists.find(({ id }) => id === list_id)?.name ?? '';
		const left = sayReasons(reasons);
		const all = counted(staged + suppressed, 'recipient');
		return `list ${list_id} ${JSON.stringify(name)}: ${all}${left === '' ? '' : `; left out: ${left}`}`;
	});
	return [...(left === '' ? [] : [`left out: ${left}`]), ...(counts.length < 2 ? [] : each)];
}

/** The code of a variable without a value, here and at every service that takes campaigns. */
export const missingVariable = 'missing_variable';

export type Finding = Pick<CampaignResult, 'line' | 'to' | 'code'> & { text: string };

interface Kind {
	count: number;
	first: string[];
	line: string;
}

/** A text with a value of its row is a kind by itself, so the number of kinds is limited. */
const mostKept = 1_000;
const mostKinds = 10;
const mostNamed = 3;

/** Recipients that cannot be sent to. A person reads a line for each kind, a machine a line for each recipient. */
export class Findings {
	rejected = 0;
	#lacksValues = false;
	readonly #isEach: boolean;
	readonly #each: string[] = [];
	readonly #kinds = new Map<string, Kind>();

	constructor({ out }: Pick<CommandContext, 'out'>) {
		this.#isEach = isMachine(out.format);
	}

	add(finding: Finding): void {
		this.rejected += 1;
		for (const label of labelsOf(finding)) this.#count(label, 1);
		this.#name(finding);
	}

	addOfLists(reasons: ListCounts['reasons'], errors: readonly string[]): void {
		for (const { code, detail, count } of reasons) {
			if (code !== missingVariable) continue;
			this.rejected += count;
			this.#lacksValues = true;
			const names = withoutValueOf(detail ?? '');
			for (const label of names.length === 0 ? ['no value for a variable'] : names.map(noValueFor))
				this.#count(label, count);
		}
		for (const text of errors) {
			const [to = ''] = text.split(': ', 1);
			this.#name({ line: null, to, code: missingVariable, text });
		}
	}

	refusal(of: number, kept: string | null = null): UsageError {
		const people = counted(this.rejected, 'recipient');
		return new UsageError(
			`${people} cannot be sent to as ${this.rejected === 1 ? 'it is' : 'they are'}; nothing was released`,
			{ details: this.#lines(of), hint: this.wayOut(kept) },
		);
	}

	async warn(cx: CommandContext, of: number, skipInvalid: boolean): Promise<void> {
		for (const line of this.#lines(of)) await cx.warn(skipInvalid ? `left out: ${line}` : line);
		// A later warning of the same variable would repeat it.
		for (const name of [...this.#kinds.keys()].flatMap(withoutValueOf)) isNews(cx, `#${name}#`);
	}

	wayOut(kept: string | null = null): Hint {
		const loose = this.#lacksValues
			? '; a variable without a value takes a default, #name|friend#, or with --no-strict-vars stays as it is written'
			: '';
		const how = `correct them, or give --skip-invalid${loose}`;
		if (kept === null) return how;
		const cancel = mailctl('campaigns', 'cancel', kept);
		return [`${how}; other content wants another --campaign, or `, cancel, ' first'];
	}

	#lines(of: number): readonly string[] {
		if (this.#isEach) return cut(this.#each, this.rejected);
		const kinds = [...this.#kinds].sort(([, a], [, b]) => b.count - a.count);
		const lines = [...new Set(kinds.map(([label, kind]) => kindLine(label, kind, of)))];
		return cut(lines.slice(0, mostKinds), lines.length);
	}

	#name(finding: Finding): void {
		const { line, to, code } = finding;
		this.#lacksValues ||= code === missingVariable;
		if (this.#isEach) this.#each.push(lineOf(finding));
		for (const label of labelsOf(finding)) {
			const kind = this.#kinds.get(label);
			if (kind === undefined || kind.first.length >= mostNamed) continue;
			kind.first.push([line === null ? '' : `line ${line}`, to].filter((part) => part !== '').join(' '));
			kind.line ||= lineOf(finding);
		}
	}

	#count(label: string, count: number): void {
		const kind = this.#kinds.get(label);
		if (kind !== undefined) kind.count += count;
		else if (this.#kinds.size < mostKept) this.#kinds.set(label, { count, first: [], line: '' });
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

function noValueFor(name: string): string {
	return `no value for #${name}#`;
}

function labelsOf({ to, code, text }: Finding): string[] {
	const names = code === missingVariable ? withoutValueOf(text) : [];
	if (names.length > 0) return names.map(noValueFor);
	const told = rowError({ code, error: text }, to).replace(/\.$/, '');
	return [to !== '' && told.startsWith(to) ? told.slice(to.length).replace(/^:? /, '') : told];
}

function lineOf({ line, to, code, text }: Finding): string {
	const place = line === null ? '' : `line ${line}: `;
	const told = rowError({ code, error: text }, to);
	return to === '' || told.includes(to) ? `${place}${told}` : `${place}${to}: ${told}`;
}
