/**
 * `#name#` variables: found once, filled for each recipient. One pass, no recursion: what a value holds is never
 * looked at again. Tokens are found from left to right, by their writing alone: `#a##b#` is a and b, `#a#b#` is a
 * followed by `b#`. Whatever has no value stays as it is written, so CSS colours and anchors survive.
 */
import { opensSafely, type UrlGuard } from './urls.js';
import { variablePattern } from './variable-names.js';

/** A place for a value. */
export interface Slot {
	readonly kind: 'variable';
	readonly name: string;
	/** Set where the value decides which scheme a link has. */
	readonly guard: UrlGuard | null;
}

/** A text cut at its variables (or more: see `trackedTemplate`): there is always one literal more than there are slots. */
export interface Template<S = Slot> {
	readonly literals: readonly string[];
	readonly slots: readonly S[];
}

export type Variables = Readonly<Record<string, string>>;
/** How a value is written where it stands: HTML-escaped, raw, or cleaned for a header. */
export type Escape = (value: string) => string;

const noGuards: ReadonlyMap<number, UrlGuard> = new Map();

/** Cuts a text at its variables. `guards` are by the offset of the opening hash (see `urlGuards`), `text` begins at `offset`. */
export function parseTemplate(text: string, guards = noGuards, offset = 0): Template {
	const literals: string[] = [];
	const slots: Slot[] = [];
	let from = 0;
	for (const match of text.matchAll(variablePattern())) {
		literals.push(text.slice(from, match.index));
		slots.push({
			kind: 'variable',
			name: match[1] ?? '',
			guard: guards.get(offset + match.index) ?? null,
		});
		from = match.index + match[0].length;
	}
	literals.push(text.slice(from));
	return { literals, slots };
}

/** What stands in a slot for this recipient, already escaped. */
export function fillSlot(slot: Slot, variables: Variables, write: Escape): string {
	// Own keys only: `#constructor#` must not reach Object.prototype.
	if (!Object.hasOwn(variables, slot.name)) return `#${slot.name}#`;
	const value = variables[slot.name] ?? '';
	// A value comes from a subscriber's form. When it would turn the link into `javascript:`, `data:` or any other
	// scheme that is not an ordinary link, the link leads nowhere instead: `href="#"`.
	if (slot.guard !== null && !opensSafely(slot.guard, value, variables)) return '#';
	return write(value);
}

/** The whole text with its values filled in. */
export function renderTemplate(template: Template, variables: Variables, write: Escape): string {
	return renderSlots(template, (slot) => fillSlot(slot, variables, write));
}

/** The whole text, with what `fill` gives in its slots. */
export function renderSlots<S>(template: Template<S>, fill: (slot: S) => string): string {
	let text = template.literals[0] ?? '';
	for (const [index, slot] of template.slots.entries()) {
		text += fill(slot) + (template.literals[index + 1] ?? '');
	}
	return text;
}

const entities: Readonly<Record<string, string>> = {
	'&': '&amp;',
	'<': '&lt;',
	'>': '&gt;',
	'"': '&quot;',
	"'": '&#39;',
};

/** Safe in text, in quoted attributes, in comments and in style elements; line ends are LF. */
export function escapeHtml(value: string): string {
	if (!/[&<>"'\r]/.test(value)) return value;
	return normalLineEnds(value).replace(/[&<>"']/g, (char) => entities[char] ?? char);
}

/**
 * CRLF and CR as LF. Texts and values are both brought to this before they meet, so that a CR that ends the one and
 * an LF that begins the other stay two line ends; the encoders write CRLF.
 */
export function normalLineEnds(text: string): string {
	return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;
}

/**
 * One line, for a header: a line break becomes one space (so that words stay apart), other control characters go.
 * U+2028 and U+2029 are line breaks to some readers.
 */
export function oneLine(value: string): string {
	if (!/[\x00-\x1f\x7f-\x9f\u2028\u2029]/.test(value)) return value;
	return value.replace(/[\r\n\u0085\u2028\u2029]+|\t/g, ' ').replace(/[\x00-\x1f\x7f-\x9f]/g, '');
}
