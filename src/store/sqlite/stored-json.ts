/** Structured columns: what we wrote as JSON, read back with its shape. */
import type { Envelope } from '../../api/content.js';
import { parseRecord, parseTexts } from './rows.js';

/** Lists and headers that are missing are empty. Throws when the text is no JSON object. */
export function readEnvelope(text: string): Envelope {
	const stored = parseRecord(text);
	return {
		from: String(stored['from']),
		reply_to: texts(stored['reply_to']),
		cc: texts(stored['cc']),
		bcc: texts(stored['bcc']),
		headers: parseTexts(JSON.stringify(stored['headers'] ?? {})),
	};
}

function texts(value: unknown): string[] {
	return Array.isArray(value) ? value.map(String) : [];
}
