/** JSON of an answer: UTF-8, with or without a byte order mark, and no deeper than what can be handled. */
import { parseJsonBody } from '../../api/json.js';

/** `fault` goes on from "The answer". */
export type JsonBody =
	| { kind: 'valid'; value: unknown }
	| { kind: 'empty' }
	| { kind: 'invalid'; fault: string };

/** Never throws. What is nested too deep would overflow the stack of whoever prints it. */
export function readJson(body: Uint8Array): JsonBody {
	if (body.length === 0) return { kind: 'empty' };
	const text = decodeText(body);
	if (text === null) return { kind: 'invalid', fault: 'is no UTF-8' };
	const parsed = parseJsonBody(text);
	if (parsed.kind === 'valid') return parsed;
	return { kind: 'invalid', fault: parsed.code === 'too_deep' ? 'is nested too deep' : 'is no JSON' };
}

function decodeText(body: Uint8Array): string | null {
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(body);
	} catch {
		return null;
	}
}
