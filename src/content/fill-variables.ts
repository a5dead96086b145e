/** Finds variables from left to right: `#a##b#` is a and b, and `#a#b#` is a followed by `b#`. */
import { escapeHtml } from '../api/quote.js';
import { referencePattern, variableValue } from '../api/variables.js';
import { loadsNothing, opensSafely, percentEncoded } from './safe-values.js';
import type { ValueGuard } from './value-guards.js';

export interface Slot {
	readonly kind: 'variable';
	readonly reference: string;
	readonly guard: Exclude<ValueGuard, 'fixed'> | null;
}

export interface Template<S = Slot> {
	readonly literals: readonly string[];
	readonly slots: readonly S[];
}

export type Variables = Readonly<Record<string, string>>;
export type Escape = (value: string) => string;

const noGuards: ReadonlyMap<number, ValueGuard> = new Map();

export function parseTemplate(text: string, guards = noGuards, offset = 0): Template {
	const literals: string[] = [];
	const slots: Slot[] = [];
	// A text of 2 MB can contain 700,000 variables, so equal variables share one slot.
	const plain = new Map<string, Slot>();
	let from = 0;
	for (const match of text.matchAll(referencePattern())) {
		const guard = guards.get(offset + match.index) ?? null;
		if (guard === 'fixed') continue;
		const reference = match[1] ?? '';
		literals.push(text.slice(from, match.index));
		const key = guard === 'query' ? `?${reference}` : guard === null ? reference : null;
		const slot: Slot = (key !== null && plain.get(key)) || { kind: 'variable', reference, guard };
		if (key !== null) plain.set(key, slot);
		slots.push(slot);
		from = match.index + match[0].length;
	}
	literals.push(text.slice(from));
	return { literals, slots };
}

export function fillSlot(slot: Slot, variables: Variables, write: Escape): string {
	const value = variableValue(slot.reference, variables);
	if (value === null) return `#${slot.reference}#`;
	if (slot.guard === 'query') return percentEncoded(value);
	// A value that would give a link a scheme such as `javascript:`, or make a style load something, becomes `#`.
	return isHarmless(slot, value, variables) ? write(value) : '#';
}

function isHarmless({ guard }: Slot, value: string, variables: Variables): boolean {
	if (guard === null || guard === 'query') return true;
	return guard === 'style' ? loadsNothing(value) : opensSafely(guard, value, variables);
}

export function renderTemplate(template: Template, variables: Variables, write: Escape): string {
	return renderSlots(template, (slot) => fillSlot(slot, variables, write));
}

export function renderSlots<S>(template: Template<S>, fill: (slot: S) => string): string {
	let text = template.literals[0] ?? '';
	for (const [index, slot] of template.slots.entries()) {
		text += fill(slot) + (template.literals[index + 1] ?? '');
	}
	return text;
}

export function htmlValue(value: string): string {
	return escapeHtml(normalLineEnds(value));
}

/** Call this before joining texts: a final CR and the next LF would otherwise become one line end. */
export function normalLineEnds(text: string): string {
	return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;
}
