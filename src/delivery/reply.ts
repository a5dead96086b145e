/** Reads an SMTP reply (RFC 5321 s.4.2) with its enhanced code (RFC 3463); the text is a stranger's. */
import type { Reply, SmtpPhase } from '../store/queue.js';

/** At most so many characters of a reply are kept. */
const maxText = 500;

/** A reply as it came, continuation lines and all. Text without a code keeps `code` null. */
export function parseReply(phase: SmtpPhase, raw: string): Reply {
	const lines = raw.split(/\r?\n/);
	const code = /^([2-5]\d{2})(?:[ -]|$)/.exec(lines[0] ?? '')?.[1];
	if (code === undefined) return { phase, code: null, enhanced: null, text: cleanText(raw) };
	const texts = lines.map((line) => line.replace(/^\d{3}[ -]?/, ''));
	const enhanced = /^([245]\.\d{1,3}\.\d{1,3})(?:\s|$)/.exec(texts[0] ?? '')?.[1] ?? null;
	const told = texts.map((text) =>
		enhanced !== null && text.startsWith(enhanced) ? text.slice(enhanced.length) : text,
	);
	return { phase, code: Number(code), enhanced, text: cleanText(told.join(' ')) };
}

/** What went wrong when the server said nothing. */
export function localReply(phase: SmtpPhase, text: string): Reply {
	return { phase, code: null, enhanced: null, text: cleanText(text) };
}

/** For people and logs: `rcpt: 550 5.1.1 User unknown`; where the system names the phase itself, that once. */
export function formatReply({ phase, code, enhanced, text }: Reply): string {
	if (code === null && text.startsWith(`${phase} `)) return text;
	const parts = [code, enhanced, text].filter((part) => part !== null && part !== '');
	return `${phase}: ${parts.join(' ')}`;
}

/** One line of at most 500 characters without control characters and bidi overrides. Cut first: it may be a megabyte. */
export function cleanText(text: string): string {
	return (
		text
			.slice(0, maxText * 2)
			.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, ' ')
			.replace(/ {2,}/g, ' ')
			.trim()
			.slice(0, maxText)
			// The cut may have halved a pair.
			.replace(/[\ud800-\udbff]$/, '')
	);
}
