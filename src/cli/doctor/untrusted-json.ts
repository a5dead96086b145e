/** Reads answers of an unknown server without trust: any value may have any type and any length. */
import { isRecord } from '../../api/json.js';
import type { WireResponse } from '../../api/wire.js';

/** The description of the service at `/`; null: none, or in another form. */
export function descriptionOf({
	status,
	body,
}: WireResponse): { version: string; extensions: string[] } | null {
	const json = status === 200 ? jsonOf(body) : null;
	if (!isRecord(json) || json['service'] !== 'mailctl') return null;
	const { version, extensions } = json;
	return { version: textOf(version) ?? 'of no version', extensions: namesIn(extensions) };
}

/** Service document, "Paginated list envelope": as far as a stranger's answer would not have it too. */
export function isPage({ body }: WireResponse): boolean {
	const json = jsonOf(body);
	return isRecord(json) && typeof json['count'] === 'number' && Array.isArray(json['results']);
}

/** A page for people, of any kind. */
export function isWebPage({ body }: WireResponse): boolean {
	return /^\s*</.test(new TextDecoder().decode(body.subarray(0, 1_000)));
}

/** The parsed JSON; null also for other content. */
export function jsonOf(body: Uint8Array): unknown {
	try {
		return JSON.parse(new TextDecoder().decode(body));
	} catch {
		return null;
	}
}

/** The value if it is a text and not empty, else null. At most a hundred characters of it. */
export function textOf(value: unknown): string | null {
	return typeof value === 'string' && value !== '' ? short(value) : null;
}

/** Its beginning: a report is no place for megabytes. */
export function short(text: string): string {
	return text.length <= mostCharacters ? text : `${text.slice(0, mostCharacters - 1)}…`;
}

const mostCharacters = 100;

/** More than any version of mailctl has. */
const mostNames = 50;

function namesIn(extensions: unknown): string[] {
	const names = isRecord(extensions) ? Object.keys(extensions) : extensions;
	if (!Array.isArray(names)) return [];
	return names.flatMap((name) => textOf(name) ?? []).slice(0, mostNames);
}
