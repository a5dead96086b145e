/** JSON of an answer: UTF-8, with or without a byte order mark. */

export type JsonBody = { kind: 'valid'; value: unknown } | { kind: 'empty' } | { kind: 'invalid' };

/** Never throws; the depth of what comes in is left to whoever stores it. */
export function readJson(body: Uint8Array): JsonBody {
	if (body.length === 0) return { kind: 'empty' };
	try {
		const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
		const value: unknown = JSON.parse(text);
		return { kind: 'valid', value };
	} catch {
		return { kind: 'invalid' };
	}
}
