/**
 * What speaks against recipients of a campaign. A person reads a line for each kind, with how many have it and the first of
 * them; a machine gets a line for each recipient.
 */

import type { CampaignResult, ListCounts } from '../../../api/campaigns.js';
import { noValueText, withoutValueOf } from '../../../api/refusals.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { isMachine } from '../../frame/globals.js';
import { counted, numberText } from '../../render/units.js';
import { rowError } from '../../verbs/address-faults.js';
import type { SendOptions } from './options.js';
import type { Prepared } from './request.js';

/** The code of a variable without a value, here and at every service that takes campaigns. */
export const missingVariable = 'missing_variable';

/** Why a recipient cannot be sent to. */
export interface Finding {
	code: string;
	error: string;
}

/** The same with the recipient. `line`: of its file; null: it has none. */
export type FindingOf = Pick<CampaignResult, 'line' | 'to' | 'code'> & { text: string };

/** The finding of a recipient without those values. */
export function lacks(email: string, missing: readonly string[]): Finding {
	return { code: missingVariable, error: noValueText(missing, email) };
}

export function metBefore(email: string): Finding {
	return { code: 'duplicate', error: `${email} is in this campaign already.` };
}

/** Recipients with the same finding. */
interface Kind {
	label: string;
	count: number;
	/** Places and addresses of the first. */
	first: string[];
	/** The whole line of the first. */
	line: string;
}

/** Kinds that are kept apart: a text with a value of the row in it is one of its own. */
const mostKept = 1_000;
/** Kinds that are shown. */
const mostKinds = 10;
const mostNamed = 3;
/** Characters of what stands for an address in a file. */
const mostQuoted = 60;

/** A collection of findings. Those of a machine are all in memory. */
export class Findings {
	/** Recipients that cannot be sent to. */
	rejected = 0;
	/** A variable without a value is among them. */
	lacksValues = false;
	readonly #isEach: boolean;
	readonly #each: string[] = [];
	readonly #kinds = new Map<string, Kind>();

	/** `isEach`: a line for each recipient. */
	constructor({ isEach }: { isEach: boolean }) {
		this.#isEach = isEach;
	}

	add(finding: FindingOf): void {
		this.rejected += 1;
		for (const label of labelsOf(finding)) this.#count(label, 1);
		this.name(finding);
	}

	count({ code, detail, count }: ListCounts['reasons'][number]): void {
		if (code !== missingVariable) return;
		this.rejected += count;
		this.lacksValues = true;
		const names = withoutValueOf(detail ?? '');
		for (const label of names.length === 0 ? ['no value for a variable'] : names.map(noValueFor))
			this.#count(label, count);
	}

	/** One of those that were counted. */
	name(finding: FindingOf): void {
		this.lacksValues ||= finding.code === missingVariable;
		if (this.#isEach) this.#each.push(findingLine(finding));
		for (const label of labelsOf(finding)) {
			const kind = this.#kinds.get(label);
			if (kind === undefined || kind.first.length >= mostNamed) continue;
			kind.first.push(whoOf(finding));
			kind.line ||= findingLine(finding);
		}
	}

	/** Not every recipient is named in the lines. */
	get isCut(): boolean {
		if (this.#isEach) return this.rejected > this.#each.length;
		return [...this.#kinds.values()].some(({ count, first }) => count > first.length);
	}

	/** The variables that lack a value. */
	get variables(): string[] {
		return [...this.#kinds.keys()].flatMap(withoutValueOf);
	}

	/** `of`: all recipients, those that can be sent to among them. */
	lines(of: number): readonly string[] {
		if (this.#isEach) return listed(this.#each, this.rejected);
		const kinds = [...this.#kinds.values()].sort((a, b) => b.count - a.count);
		// A single recipient may be of several kinds.
		const lines = [...new Set(kinds.map((kind) => kindLine(kind, of)))];
		return listed(lines.slice(0, mostKinds), lines.length, 'kind');
	}

	#count(label: string, count: number): void {
		const kind = this.#kinds.get(label);
		if (kind !== undefined) kind.count += count;
		else if (this.#kinds.size < mostKept) this.#kinds.set(label, { label, count, first: [], line: '' });
	}
}

/** Findings, and the recipients they are of, those that can be sent to among them. */
export interface Found {
	findings: Findings;
	of: number;
}

/** As the format of the command wants them. */
export function findingsFor(cx: CommandContext): Findings {
	return new Findings({ isEach: isMachine(cx.out.format) });
}

/** The lines, and how many more there are. */
function listed(lines: readonly string[], all: number, what?: string): string[] {
	const left = all - lines.length;
	if (left <= 0) return [...lines];
	return [
		...lines,
		`and ${numberText(left)} more${what === undefined ? '' : ` ${left === 1 ? what : `${what}s`}`}`,
	];
}

/** `no value for #city#: 20,000 of 20,000 recipients (the first: ann@example.com, bob@example.com, cy@example.com)`. */
function kindLine({ label, count, first, line }: Kind, of: number): string {
	if (count === 1 && line !== '') return line;
	const named = first.length === 0 ? '' : ` (the first: ${first.join(', ')})`;
	return `${label}: ${numberText(count)} of ${counted(of, 'recipient')}${named}`;
}

function noValueFor(name: string): string {
	return `no value for #${name}#`;
}

/** What recipients with the same finding have in common: each variable, or the text without the address. */
function labelsOf({ to, code, text }: FindingOf): string[] {
	const names = code === missingVariable ? withoutValueOf(text) : [];
	if (names.length > 0) return names.map(noValueFor);
	const told = rowError({ code, error: text }, to).replace(/\.$/, '');
	return [to !== '' && told.startsWith(to) ? told.slice(to.length).replace(/^:? /, '') : told];
}

function whoOf({ line, to }: FindingOf): string {
	const who = to.length > mostQuoted ? `${to.slice(0, mostQuoted)}…` : to;
	return [line === null ? '' : `line ${line}`, who].filter((part) => part !== '').join(' ');
}

/** `line 3: ann@: to: Enter a valid email address: nothing stands after @`; the words may name the address themselves. */
function findingLine({ line, to, code, text }: FindingOf): string {
	const place = line === null ? '' : `line ${line}: `;
	const told = rowError({ code, error: text }, to);
	return to === '' || told.includes(to) ? `${place}${told}` : `${place}${to}: ${told}`;
}

/** How many recipients there are in all, and where all findings are told. */
export interface Told {
	of: number;
	where?: string;
	/** The name of a campaign that stays staged with its rows and options: others want another name. */
	kept?: string;
}

/** The refusal of a campaign with findings. */
export function cannotBeSent(findings: Findings, told: Told): UsageError {
	const { rejected } = findings;
	const people = counted(rejected, 'recipient');
	return new UsageError(
		`${people} cannot be sent to as ${rejected === 1 ? 'it is' : 'they are'}; nothing was released`,
		{ details: findings.lines(told.of), hint: wayOut(findings, told) },
	);
}

/** Warnings of what the campaign would be refused for, or leave out, where only a message is looked at. */
export async function warnOfFindings(
	cx: CommandContext,
	{ findings, of }: Found,
	{ skipInvalid }: Pick<SendOptions, 'skipInvalid'>,
): Promise<void> {
	if (findings.rejected === 0) return;
	for (const line of findings.lines(of)) await cx.warn(skipInvalid ? `left out: ${line}` : line);
	if (!skipInvalid) await cx.hint(['a campaign is refused for that: ', wayOut(findings, { of })]);
}

/** The request with those variables named, so that no second warning is. */
export function withNamed(prepared: Prepared, { findings }: Found): Prepared {
	return { ...prepared, named: [...(prepared.named ?? []), ...findings.variables] };
}

function wayOut({ lacksValues, isCut }: Findings, { where = '', kept }: Told): Hint {
	const loose = lacksValues
		? '; a variable without a value takes a default, #name|friend#, or with --no-strict-vars stays as it is written'
		: '';
	const mend = `mend them${isCut ? where : ''}`;
	const how = `, or give --skip-invalid${loose}`;
	if (kept === undefined) return `${mend}${how}`;
	return [
		`${mend}${how}; other content wants another --campaign, or `,
		mailctl('campaigns', 'cancel', kept),
		' first',
	];
}

/** So many of a list are kept to be told of. */
const mostOfList = 100;

/** Where all are, in brackets. `hasRejectLines`: results have a line for each; `rejected`: how many there are. */
export function whereAllAre(
	cx: CommandContext,
	{ hasRejectLines, options }: { hasRejectLines: boolean; options: Pick<SendOptions, 'results'> },
	rejected: number,
): string {
	if (hasRejectLines) return options.results === undefined ? ' (--results FILE has all of them)' : '';
	if (isMachine(cx.out.format)) return '';
	return ` (-o json has ${rejected > mostOfList ? `the first ${mostOfList}` : 'all'} of them)`;
}
