import { cleanText } from '../reply.js';
import { type FoundAddress, findAddresses, isSame } from './addresses.js';
import { type Line, type Part, placeOf } from './mime.js';
import { hasCode, type Statement } from './report.js';
import { aliases, bystanders, closings, failing, recipientLabels } from './wordings.js';

export interface TextRecipient extends Statement {
	isWeak: boolean;
	/** The line or sentence reports a failure, or a line above it does. */
	isStated: boolean;
}

interface Mention {
	at: number;
	address: string;
	original: string | null;
	rest: string;
	form: string;
	isWeak: boolean;
	isStated: boolean;
}

export const onlyMentioned = 'mentioned';

const openingLines = 10;
const maxMentions = 500;
const maxBeside = 300;

class Mentions {
	readonly all: Mention[] = [];
	readonly #lines: readonly Line[];
	/** Indent of the first line in this paragraph that names a recipient. Deeper lines describe that recipient. */
	#recipientIndent: number | null = null;

	constructor(lines: readonly Line[]) {
		this.#lines = lines;
		for (const [at, line] of lines.entries()) {
			if (this.all.length >= maxMentions) break;
			const text = spelledOut(line.text);
			if (text.trim() === '') this.#recipientIndent = null;
			const found = findAddresses(text);
			found.some((_, index) => this.#isWholeLine(at, text, found.slice(index)));
		}
	}

	/** Reads the first address. Returns true if the other addresses of the line need not be read. */
	#isWholeLine(at: number, text: string, [one, ...others]: readonly FoundAddress[]): boolean {
		if (one === undefined) return true;
		const beside = besides(text, one);
		if (aliases.test(beside.before)) {
			this.#addAlias(at, one);
			return true;
		}
		const shape = shapeOf(beside, one);
		if (shape === null) {
			this.#addWords(at, one, beside);
			return false;
		}
		const indent = text.length - text.trimStart().length;
		if (this.#recipientIndent !== null && indent > this.#recipientIndent && shape.form !== 'labelled')
			return true;
		this.#recipientIndent ??= indent;
		const { form, isWeak = false, rest = beside.after.trim() } = shape;
		const isStated = !isWeak || isBelowStatement(this.#lines, at);
		this.#add(at, one, { form, rest, isWeak, isStated });
		let previous = one;
		for (const next of others) {
			if (!/^[>"']?\s{0,4}[,;]\s{0,4}[<"']?$/.test(text.slice(previous.end, next.start))) break;
			this.#add(at, next, { form, isWeak, isStated });
			previous = next;
		}
		return true;
	}

	#addAlias(at: number, one: FoundAddress): void {
		const last = this.all.at(-1);
		if (last === undefined || at - last.at > 3) this.#add(at, one, { form: 'alias' });
		else Object.assign(last, { original: one.address, isWeak: false });
	}

	#addWords(at: number, one: FoundAddress, { before, after }: Beside): void {
		const said = this.#recipientIndent === null ? saidOf(this.#lines, at, one) : 'bystander';
		const form = isDialogue(before) ? 'SMTP dialogue' : said;
		if (said === 'sentence') this.#add(at, one, { form: said, rest: after });
		else if (form !== 'bystander' && (form !== onlyMentioned || at < openingLines))
			this.#add(at, one, { form, isWeak: true, isStated: false });
	}

	#add(at: number, { address }: FoundAddress, more: Partial<Mention> & { form: string }): void {
		this.all.push({ at, address, original: null, rest: '', isWeak: false, isStated: true, ...more });
	}
}

/** X.400 has no `@`, so a gateway writes `(a)`, as in `RFC-822=ann(a)example.org`. */
function spelledOut(text: string): string {
	return /rfc-?822=[^\s;/]{1,64}\(a\)/i.test(text) ? text.replace(/\(a\)/gi, '@') : text;
}

interface Beside {
	before: string;
	after: string;
	isAngled: boolean;
	isQuoted: boolean;
}

const opener = /[<"'([]{1,4}(?:mailto:)?$/i;

function besides(text: string, { start, end }: FoundAddress): Beside {
	const before = text.slice(Math.max(0, start - maxBeside), start);
	const after = text.slice(end, end + 700);
	const close = /^[>"')\]]{0,4}/.exec(after)?.[0] ?? '';
	return {
		before: before.replace(opener, ''),
		after: after.slice(close.length),
		isAngled: /<(?:mailto:)?$/i.test(before),
		isQuoted: before.endsWith('"') || before.endsWith("'"),
	};
}

interface Shape {
	form: string;
	isWeak?: true;
	rest?: string;
}

function shapeOf({ before, after, isAngled, isQuoted }: Beside, { address }: FoundAddress): Shape | null {
	const label = before.trimStart();
	if (isDecoration(before)) return headOf({ before, after, isAngled, isQuoted });
	const code = /^[45]\d\d[ -](?:[45]\.\d\.\d{1,3} )?$/.exec(label);
	if (code !== null && /^\.\.\. /.test(after))
		return { form: 'sendmail', rest: `${label}${address}${after}` };
	if (/^\[.{0,80}\bAddress: $/.test(before)) return { form: 'bracketed record' };
	if (/\b(?:dda[:.])?(?:smtp|rfc-?822)=$/i.test(before) || /^[a-z]{1,4}=/i.test(label))
		return { form: 'X.400' };
	if (isDialogue(before)) return null;
	const name =
		/^[^\p{L}]{0,20}([\p{L}][\p{L}\p{N} '()/._-]{0,80}?) ?[:=](?: ?rfc-?822 ?;)?[\s\-*]{0,40}$/iu.exec(
			before,
		)?.[1];
	if (name === undefined || bystanders.test(name) || !recipientLabels.test(name)) return null;
	return /^to$/i.test(name) ? { form: 'To of a summary', isWeak: true } : { form: 'labelled' };
}

function isDecoration(before: string): boolean {
	return (
		before.length < 100 && /^[\s*•·>|#=\-–—.]{0,99}(?:\d{1,3}[.)] {1,9})?(?:"[^"]{0,80}" )?$/.test(before)
	);
}

function headOf({ before, after, isAngled, isQuoted }: Beside): Shape | null {
	const isBulleted = /[*•·>\-–—]/.test(before);
	// The address may be repeated, as in `a@b <a@b>`.
	const behind = after.replace(/^ <[^<>]{0,255}>/, '');
	const rest = behind.replace(/^[:,;.]{0,2}\s{0,20}/, '');
	if (rest.trim() === '') {
		if (isAngled) return { form: 'address, colon', rest: '' };
		if (isQuoted) return { form: 'quoted address', rest: '' };
		return isBulleted ? { form: 'bulleted', rest: '' } : { form: 'address alone', isWeak: true, rest: '' };
	}
	if (isAngled) return { form: 'address, colon', rest };
	if (/^: {0,4}\S/.test(behind)) return { form: 'address, words', rest };
	if (/^,? on \S/.test(behind)) return { form: 'Exchange', rest: behind.replace(/^,? on /, '') };
	const reason = /^\s{0,20}[[(]([^\])]{1,200})[\])]\s{0,20}$/.exec(behind)?.[1];
	if (reason !== undefined) return { form: 'bracketed reason', rest: reason };
	if (/^\s+Invalid Address, /.test(behind.slice(0, 60))) return { form: 'Zoho', rest };
	const isApart = /^(?:\s{0,4}(?:\.\.\.|[-–—=>|]{1,3})\s{0,4}|[ \t]{2,40}|\t)\S/.test(behind);
	return isApart && (failing.test(rest) || hasCode(rest)) ? { form: 'address, reason', rest } : null;
}

function isDialogue(before: string): boolean {
	return /\bRCPT TO:\s{0,4}<?$/i.test(before);
}

function saidOf(lines: readonly Line[], at: number, { start, end }: FoundAddress): string {
	const text = lines[at]?.text ?? '';
	const before = `${paragraph(lines, at, -1)} ${text.slice(0, start)}`.slice(-maxBeside);
	const after = `${text.slice(end)} ${paragraph(lines, at, 1)}`.slice(0, maxBeside);
	const from = lastStop(before);
	const opening = before.slice(from).replace(opener, '');
	if (bystanders.test(opening)) return 'bystander';
	const stop = /[.!?。](?:\s|$)/.exec(after)?.index ?? after.length;
	return failing.test(`${opening} ${after.slice(0, stop)}`) ? 'sentence' : onlyMentioned;
}

function lastStop(text: string): number {
	for (let at = text.length - 2; at > 0; at -= 1)
		if ('.!?。'.includes(text[at] ?? '') && /\s/.test(text[at + 1] ?? '')) return at + 1;
	return 0;
}

function paragraph(lines: readonly Line[], at: number, step: 1 | -1): string {
	const texts: string[] = [];
	for (let next = at + step; texts.length < 2; next += step) {
		const text = lines[next]?.text.trim() ?? '';
		if (text === '') break;
		texts.push(text);
	}
	return (step === 1 ? texts : texts.reverse()).join(' ');
}

function isBelowStatement(lines: readonly Line[], at: number): boolean {
	let words = 0;
	for (let above = at - 1; above >= Math.max(0, at - 50) && words < 2; above -= 1) {
		const text = lines[above]?.text ?? '';
		if (!/\p{L}/u.test(text) || text.includes('@')) continue;
		if (failing.test(text)) return true;
		words += 1;
	}
	return false;
}

const maxDetailLines = 100;

export function recipientsIn(lines: readonly Line[], part: Pick<Part, 'path' | 'type'>): TextRecipient[] {
	const { all } = new Mentions(lines);
	const better = all.filter(({ form }) => form !== onlyMentioned);
	const mentions = better.length > 0 ? better : all;
	const groups = new Map<string, Mention[]>();
	for (const mention of mentions) {
		const key = mention.address.toLowerCase();
		const group = groups.get(key);
		if (group === undefined) groups.set(key, [mention]);
		else group.push(mention);
	}
	return [...groups.values()].flatMap((group) => {
		const first = group.find(({ isWeak }) => !isWeak) ?? group[0];
		if (first === undefined) return [];
		const told =
			groups.size === 1 ? [alone(lines, first)] : group.map((mention) => among(lines, mention, mentions));
		const details = told.map(focused);
		return {
			address: first.address,
			original: group.find(({ original }) => original !== null)?.original ?? null,
			detail: details.find(hasCode) ?? details.find((detail) => detail !== '') ?? '',
			form: first.form,
			isWeak: first.isWeak,
			isStated: group.some(({ isStated }) => isStated),
			place: placeOf({ ...part, line: lines[first.at]?.number ?? 1 }),
		};
	});
}

/** Prefers the text after the report's only address, unless only the text before the address has a code. */
function alone(lines: readonly Line[], mention: Mention): readonly string[] {
	const below = lines.slice(mention.at + 1).map(({ text }) => text);
	const closing = below.findIndex((text) => closings.some((one) => one.test(text)));
	const after = [mention.rest, ...(closing === -1 ? below : below.slice(0, closing))];
	const before = lines.slice(0, mention.at + 1).map(({ text }) => text);
	const told = after.some(hasCode) || !before.some(hasCode) ? after : before;
	return told.some((text) => text.trim() !== '') ? told : before;
}

function among(lines: readonly Line[], mention: Mention, mentions: readonly Mention[]): readonly string[] {
	const next = mentions.find((one) => one.at > mention.at && !isSame(one.address, mention.address));
	const end = Math.min(next?.at ?? lines.length, mention.at + maxDetailLines);
	const told = [mention.rest];
	let isBlank = mention.rest.trim() === '';
	let isCoded = hasCode(mention.rest);
	for (const { text } of lines.slice(mention.at + 1, end)) {
		if (text.trim() === '' && !isBlank) break;
		if (isCoded && /^\d{3} /.test(text)) break;
		told.push(text);
		isBlank &&= text.trim() === '';
		isCoded ||= hasCode(text);
	}
	return told;
}

function focused(texts: readonly string[]): string {
	const from = texts.findIndex(hasCode);
	const rest = texts.slice(Math.max(from, 0));
	const end = from === -1 ? -1 : rest.findIndex((text, at) => at > 0 && text.trim() === '');
	return cleanText((end === -1 ? rest : rest.slice(0, end)).join(' '));
}
