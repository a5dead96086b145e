/**
 * Findings about recipients of a campaign. A person reads a line for each kind, with how many have it and the first of them;
 * a machine gets a line for each recipient.
 */

import type { CampaignResult, ListCounts } from '../../../api/campaigns.js';
import { withoutValueOf } from '../../../api/refusals.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { isMachine } from '../../frame/globals.js';
import { counted, numberText } from '../../render/units.js';
import { rowError } from '../../verbs/address-faults.js';

/** The code of a variable without a value, here and at every service that takes campaigns. */
export const missingVariable = 'missing_variable';

/** Why a recipient cannot be sent to. `line`: of its file; null: it has none. */
export type Finding = Pick<CampaignResult, 'line' | 'to' | 'code'> & { text: string };

/** Recipients with the same finding. */
interface Kind {
	count: number;
	/** Places and addresses of the first. */
	first: string[];
	/** The whole line of the first. */
	line: string;
}

/** Kinds that are kept apart: a text with a value of the row in it is a kind by itself. */
const mostKept = 1_000;
const mostKinds = 10;
const mostNamed = 3;
const mostQuoted = 60;

export class Findings {
	/** Recipients that cannot be sent to. */
	rejected = 0;
	/** A variable without a value is among them. */
	lacksValues = false;
	readonly #isEach: boolean;
	readonly #each: string[] = [];
	readonly #kinds = new Map<string, Kind>();

	/** A machine gets a line for each recipient. */
	constructor({ out }: Pick<CommandContext, 'out'>) {
		this.#isEach = isMachine(out.format);
	}

	add(finding: Finding): void {
		this.rejected += 1;
		for (const label of labelsOf(finding)) this.#count(label, 1);
		this.#name(finding);
	}

	/** Subscribers without a value: all of them are counted, and the first named by their errors. */
	addOfLists(reasons: ListCounts['reasons'], errors: readonly string[]): void {
		for (const { code, detail, count } of reasons) {
			if (code !== missingVariable) continue;
			this.rejected += count;
			this.lacksValues = true;
			const names = withoutValueOf(detail ?? '');
			for (const label of names.length === 0 ? ['no value for a variable'] : names.map(noValueFor))
				this.#count(label, count);
		}
		for (const text of errors) {
			const [to = ''] = text.split(': ', 1);
			this.#name({ line: null, to, code: missingVariable, text });
		}
	}

	get variables(): string[] {
		return [...this.#kinds.keys()].flatMap(withoutValueOf);
	}

	/** `of`: all recipients, those that can be sent to among them. */
	lines(of: number): readonly string[] {
		if (this.#isEach) return cut(this.#each, this.rejected);
		const kinds = [...this.#kinds].sort(([, a], [, b]) => b.count - a.count);
		// A single recipient may be of several kinds.
		const lines = [...new Set(kinds.map(([label, kind]) => kindLine(label, kind, of)))];
		return cut(lines.slice(0, mostKinds), lines.length, 'kind');
	}

	/** The refusal of a campaign. `kept`: the name of one that stays staged. */
	refusal(of: number, kept: string | null = null): UsageError {
		const people = counted(this.rejected, 'recipient');
		return new UsageError(
			`${people} cannot be sent to as ${this.rejected === 1 ? 'it is' : 'they are'}; nothing was released`,
			{ details: this.lines(of), hint: this.#wayOut(kept) },
		);
	}

	/** Warnings where only a message is looked at, or where these recipients are left out. */
	async warn(cx: CommandContext, of: number, skipInvalid: boolean): Promise<void> {
		for (const line of this.lines(of)) await cx.warn(skipInvalid ? `left out: ${line}` : line);
	}

	async hint(cx: CommandContext): Promise<void> {
		await cx.hint(['a campaign is refused for that: ', this.#wayOut(null)]);
	}

	#wayOut(kept: string | null): Hint {
		const loose = this.lacksValues
			? '; a variable without a value takes a default, #name|friend#, or with --no-strict-vars stays as it is written'
			: '';
		const how = `mend them, or give --skip-invalid${loose}`;
		if (kept === null) return how;
		return [
			`${how}; other content wants another --campaign, or `,
			mailctl('campaigns', 'cancel', kept),
			' first',
		];
	}

	#name(finding: Finding): void {
		this.lacksValues ||= finding.code === missingVariable;
		if (this.#isEach) this.#each.push(lineOf(finding));
		for (const label of labelsOf(finding)) {
			const kind = this.#kinds.get(label);
			if (kind === undefined || kind.first.length >= mostNamed) continue;
			const { line, to } = finding;
			const who = to.length > mostQuoted ? `${to.slice(0, mostQuoted)}…` : to;
			kind.first.push([line === null ? '' : `line ${line}`, who].filter((part) => part !== '').join(' '));
			kind.line ||= lineOf(finding);
		}
	}

	#count(label: string, count: number): void {
		const kind = this.#kinds.get(label);
		if (kind !== undefined) kind.count += count;
		else if (this.#kinds.size < mostKept) this.#kinds.set(label, { count, first: [], line: '' });
	}
}

function cut(lines: readonly string[], all: number, what?: string): string[] {
	const left = all - lines.length;
	if (left <= 0) return [...lines];
	return [
		...lines,
		`and ${what === undefined ? `${numberText(left)} more` : `${counted(left, `more ${what}`)}`}`,
	];
}

/** `no value for #city#: 20,000 of 20,000 recipients (the first: ann@example.com, bob@example.com, cy@example.com)`. */
function kindLine(label: string, { count, first, line }: Kind, of: number): string {
	if (count === 1 && line !== '') return line;
	const named = first.length === 0 ? '' : ` (the first: ${first.join(', ')})`;
	return `${label}: ${numberText(count)} of ${counted(of, 'recipient')}${named}`;
}

function noValueFor(name: string): string {
	return `no value for #${name}#`;
}

/** Recipients with the same finding share each variable, or the text without the address. */
function labelsOf({ to, code, text }: Finding): string[] {
	const names = code === missingVariable ? withoutValueOf(text) : [];
	if (names.length > 0) return names.map(noValueFor);
	const told = rowError({ code, error: text }, to).replace(/\.$/, '');
	return [to !== '' && told.startsWith(to) ? told.slice(to.length).replace(/^:? /, '') : told];
}

/** `line 3: ann@: to: Enter a valid email address: nothing stands after @`; the words may name the address themselves. */
function lineOf({ line, to, code, text }: Finding): string {
	const place = line === null ? '' : `line ${line}: `;
	const told = rowError({ code, error: text }, to);
	return to === '' || told.includes(to) ? `${place}${told}` : `${place}${to}: ${told}`;
}
