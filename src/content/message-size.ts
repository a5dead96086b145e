import { type FieldErrors, invalid } from '../api/errors.js';
import type { Content } from '../api/messages.js';
import { maxSubjectLength } from '../api/messages.js';
import { countCodePoints } from '../api/schema/python.js';
import { variablesIn, variableValue } from '../api/variables.js';
import { htmlValue, type Variables } from './fill-variables.js';

const maxJoinedBytes = 16 * 1024 * 1024;

export class TooLarge extends Error {
	override readonly name = 'TooLarge';
}

export function contextErrors(fault: string): FieldErrors {
	return { context: [{ code: 'too_large', message: `With this context ${fault}.` }] };
}

export async function refusingTooLarge<T>(work: () => Promise<T>): Promise<T> {
	try {
		return await work();
	} catch (error) {
		if (error instanceof TooLarge) throw invalid(contextErrors(error.message));
		throw error;
	}
}

export interface ContentSize {
	readonly subject: string;
	readonly bytes: number;
	readonly text: readonly (readonly [reference: string, times: number])[];
	readonly html: readonly (readonly [reference: string, times: number])[];
	/** Maximum octets per character of a value. Percent-encoding takes up to nine. */
	readonly perCharacter: { readonly text: number; readonly html: number };
}

export function contentSize({
	subject,
	text,
	html,
}: Pick<Content, 'subject' | 'text' | 'html'>): ContentSize {
	const [inText, inHtml] = [text ?? '', html ?? ''];
	return {
		subject,
		bytes: Buffer.byteLength(inText) + Buffer.byteLength(inHtml),
		text: timesOf(inText),
		html: timesOf(inHtml),
		perCharacter: { text: mayEncode.test(inText) ? 9 : 3, html: mayEncode.test(inHtml) ? 9 : 6 },
	};
}

const mayEncode = /[?&]|mailto:/i;

export function joinFault(size: ContentSize, variables: Variables, more = 0): string | null {
	return subjectFault(size.subject, variables) ?? sizeFault(size, variables, more);
}

function sizeFault(size: ContentSize, variables: Variables, more: number): string | null {
	if (isSurelyWithin(maxJoinedBytes - more, size, variables)) return null;
	let bytes = size.bytes + more;
	for (const [reference, times] of size.text)
		bytes += times * octetsOf(reference, variables, (value) => value);
	for (const [reference, times] of size.html) bytes += times * octetsOf(reference, variables, htmlValue);
	if (bytes <= maxJoinedBytes) return null;
	return `the message would have ${bytes.toLocaleString('en-US')} bytes with its values, and may have ${maxJoinedBytes.toLocaleString('en-US')}`;
}

function subjectFault(subject: string, variables: Variables): string | null {
	if (!subject.includes('#')) return null;
	// Measures each value once, without building a subject that may be far too long.
	const length = timesOf(subject).reduce((sum, [reference, times]) => {
		const value = variableValue(reference, variables);
		return value === null ? sum : sum + times * (countCodePoints(value) - countCodePoints(reference) - 2);
	}, countCodePoints(subject));
	if (length <= maxSubjectLength) return null;
	return `the subject would have ${length.toLocaleString('en-US')} characters with its values, and may have ${maxSubjectLength}`;
}

/** Uses only the lengths of the values, so the result may be false for a message that fits. */
export function isSurelyWithin(
	octets: number,
	{ bytes, text, html, perCharacter }: ContentSize,
	variables: Variables,
): boolean {
	const times = ([reference, count]: readonly [string, number]) => count * lengthOf(reference, variables);
	const sum = (all: ContentSize['text']) => all.reduce((total, each) => total + times(each), 0);
	return bytes + perCharacter.text * sum(text) + perCharacter.html * sum(html) <= octets;
}

function timesOf(text: string): [string, number][] {
	const times = new Map<string, number>();
	for (const reference of variablesIn(text)) times.set(reference, (times.get(reference) ?? 0) + 1);
	return [...times];
}

function lengthOf(reference: string, variables: Variables): number {
	return variableValue(reference, variables)?.length ?? 0;
}

function octetsOf(reference: string, variables: Variables, write: (value: string) => string): number {
	const value = variableValue(reference, variables);
	return value === null ? 0 : Buffer.byteLength(write(value)) - Buffer.byteLength(reference) - 2;
}
