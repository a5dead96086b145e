/** Recipients that the words of a report name, and what they say about each. */
import { cleanText } from '../reply.js';
import { isSame } from './addresses.js';
import { judge, readCodes } from './codes.js';
import type { Line } from './fields.js';
import { closings, expiries, recipientLines } from './forms.js';
import type { Part } from './mime.js';
import type { DeliveryAction, Place, ReportedRecipient } from './report.js';

/** One recipient that a notice names. */
export interface NamedRecipient {
	address: string;
	/** What the refusing server said, or all that is told; one line, at most 500 characters; `''` for nothing. */
	detail: string;
	form: string;
	/** Named only by a line that is also written for other reasons. */
	isWeak: boolean;
	place: Place;
}

interface Hit {
	at: number;
	address: string;
	rest: string;
	form: string;
	isWeak: boolean;
}

/** More are not looked for: a report names a few. */
const maxNamed = 500;
/** What is said about one of several takes no more lines. */
const maxDetailLines = 100;

/** Every recipient these lines name, in their order, each once. */
export function namedIn(lines: readonly Line[], part: Pick<Part, 'path' | 'type'>): NamedRecipient[] {
	const hits = hitsIn(lines);
	const groups = new Map<string, Hit[]>();
	for (const hit of hits) {
		const key = hit.address.toLowerCase();
		groups.set(key, [...(groups.get(key) ?? []), hit]);
	}
	return [...groups.values()].flatMap((group) => {
		const [first] = group;
		if (first === undefined) return [];
		const told = groups.size === 1 ? [alone(lines, first)] : group.map((hit) => among(lines, hit, hits));
		const details = told.map(focused);
		return {
			address: first.address,
			detail: details.find(hasCode) ?? details.find((detail) => detail !== '') ?? '',
			form: first.form,
			isWeak: group.every(({ isWeak }) => isWeak),
			place: { part: part.path, type: part.type, line: lines[first.at]?.number ?? 1 },
		};
	});
}

/** Without those that are named weakly beside better ones, and without who the report itself was sent to. */
export function strongest(named: readonly NamedRecipient[], senders: readonly string[]): NamedRecipient[] {
	const strong = named.filter(({ isWeak }) => !isWeak);
	if (strong.length > 0) return strong;
	const others = named.filter(({ address }) => !senders.some((sender) => isSame(sender, address)));
	return others.length > 0 ? others : [...named];
}

/** What follows from what is said of him, by the codes in it. `told`: what the report says happened. */
export function judgeNamed(
	{ address, detail, form, place }: Omit<NamedRecipient, 'isWeak'>,
	told: DeliveryAction,
): ReportedRecipient {
	const codes = readCodes(detail);
	const action = finalAction(told, detail);
	return {
		address,
		original_address: null,
		action,
		...codes,
		diagnostic: detail === '' ? null : detail,
		remote_mta: null,
		...judge({ action, ...codes, text: detail }),
		form,
		place,
	};
}

/** A delay that is said to be over is a failure. */
export function finalAction(action: DeliveryAction, detail: string): DeliveryAction {
	return action === 'delayed' && expiries.some((one) => one.test(detail)) ? 'failed' : action;
}

/** Lines as one text. */
export function joined(lines: readonly Line[]): string {
	return lines
		.map(({ text }) => text.trim())
		.join(' ')
		.slice(0, 20_000);
}

function hitsIn(lines: readonly Line[]): Hit[] {
	const hits: Hit[] = [];
	for (const [at, { text }] of lines.entries()) {
		if (hits.length >= maxNamed) break;
		if (!text.includes('@')) continue;
		for (const { form, line, isWeak } of recipientLines) {
			const groups = line.exec(text)?.groups;
			const address = groups?.['address'];
			if (address === undefined) continue;
			hits.push({ at, address, rest: groups?.['rest'] ?? '', form, isWeak: isWeak === true });
			break;
		}
	}
	return hits;
}

/** Nobody else is named: all the rest is about him, and where that has no code, what stands before is, too. */
function alone(lines: readonly Line[], hit: Hit): readonly string[] {
	const below = lines.slice(hit.at + 1).map(({ text }) => text);
	const closing = below.findIndex((text) => closings.some((one) => one.test(text)));
	const after = [hit.rest, ...(closing === -1 ? below : below.slice(0, closing))];
	const before = lines.slice(0, hit.at + 1).map(({ text }) => text);
	const told = after.some(hasCode) || !before.some(hasCode) ? after : before;
	return told.some((text) => text.trim() !== '') ? told : before;
}

/** Up to a blank line, another reply or whoever is named next. */
function among(lines: readonly Line[], hit: Hit, hits: readonly Hit[]): readonly string[] {
	const next = hits.find((one) => one.at > hit.at && !isSame(one.address, hit.address));
	const end = Math.min(next?.at ?? lines.length, hit.at + maxDetailLines);
	const told = [hit.rest];
	let isBlank = hit.rest.trim() === '';
	let isCoded = hasCode(hit.rest);
	for (const { text } of lines.slice(hit.at + 1, end)) {
		if (text.trim() === '' && !isBlank) break;
		if (isCoded && /^\d{3} /.test(text)) break;
		told.push(text);
		isBlank &&= text.trim() === '';
		isCoded ||= hasCode(text);
	}
	return told;
}

/** From the first line with a code on, up to a blank one; all of it when there is no code. */
function focused(texts: readonly string[]): string {
	const from = texts.findIndex(hasCode);
	const rest = texts.slice(Math.max(from, 0));
	const end = from === -1 ? -1 : rest.findIndex((text, at) => at > 0 && text.trim() === '');
	return cleanText((end === -1 ? rest : rest.slice(0, end)).join(' '));
}

function hasCode(text: string): boolean {
	const { reply_code, status } = readCodes(text);
	return reply_code !== null || status !== null;
}
