/** What a stranger answers, read for no more than it is: any type may stand anywhere, at any length. */
import type { WireResponse } from '../../api/wire.js';

/** What it says of itself at `/`; null: nothing, or something else. */
export function announced({ status, body }: WireResponse): { version: string; extensions: string[] } | null {
	const json = status === 200 ? jsonOf(body) : null;
	if (!isObject(json) || json['service'] !== 'mailctl') return null;
	const { version, extensions } = json;
	return { version: textOf(version) ?? 'of no version', extensions: namesIn(extensions) };
}

/** Service document, "Paginated list envelope": as far as a stranger's answer would not have it too. */
export function isPage({ body }: WireResponse): boolean {
	const json = jsonOf(body);
	return isObject(json) && typeof json['count'] === 'number' && Array.isArray(json['results']);
}

/** Whatever it holds; null also for what is no JSON. */
export function jsonOf(body: Uint8Array): unknown {
	try {
		return JSON.parse(new TextDecoder().decode(body));
	} catch {
		return null;
	}
}

/** It may hold anything. */
export function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What is given as a text, if it is one that says something, else null. At most a hundred characters of it. */
export function textOf(value: unknown): string | null {
	return typeof value === 'string' && value !== '' ? short(value) : null;
}

/** Its beginning: a report is no place for megabytes. */
export function short(text: string): string {
	return text.length <= mostCharacters ? text : `${text.slice(0, mostCharacters - 1)}…`;
}

const mostCharacters = 100;

/** More than any version of ours has. */
const mostNames = 50;

function namesIn(extensions: unknown): string[] {
	const names = isObject(extensions) ? Object.keys(extensions) : extensions;
	if (!Array.isArray(names)) return [];
	return names.flatMap((name) => textOf(name) ?? []).slice(0, mostNames);
}
