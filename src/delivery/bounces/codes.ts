/** Reply codes and enhanced status codes in the text of a report, and what follows from them (decision 31). */
import type { Reply } from '../../store/queue.js';
import { classify, isVague } from '../classify.js';
import type { DeliveryAction } from './report.js';

export interface Codes {
	reply_code: number | null;
	status: string | null;
}

// Not part of an address literal, a size or a version; `4xx` and `5xx` with a second digit that SMTP uses.
const replyCode =
	/(?:^|[\s:("'[<])([45][0-7]\d)(?=[\s\-:,;)\]]|$)(?!(?:\s|-)(?:bytes|characters|seconds|hours|recipients|messages|kb|mb)\b)/gi;
const innerCode = /\.\.\.\s(5[0-5]\d)\s/;
const enhancedCode = /(?:^|[^\d.])([245]\.[0-7]\.\d{1,3})(?!\.?\d)/g;

/** The codes in what a server is said to have answered; each null where there is none. */
export function readCodes(text: string): Codes {
	const codes = [...text.matchAll(replyCode)].map((match) => Number(match[1]));
	// Old sendmail wraps the server's answer in one of its own: "554 <a@b>... 550 Host unknown".
	const inner = innerCode.exec(text)?.[1];
	const reply_code = codes[0] === 554 && inner !== undefined ? Number(inner) : (codes[0] ?? null);
	const statuses = [...text.matchAll(enhancedCode)].map((match) => match[1] ?? '');
	const digit = reply_code === null ? null : String(reply_code)[0];
	const status = statuses.find((one) => digit === null || one.startsWith(digit ?? '')) ?? null;
	return { reply_code, status };
}

/** The status in a field `Status` (RFC 3464 s.2.3.4), which may hold a comment too; null when it is none. */
export function readStatus(value: string): string | null {
	return /(?:^|[^\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(value)?.[1] ?? null;
}

/**
 * The more telling of two: the answer a report quotes is the refusing server's own word, the report's field what
 * another program made of it ("5.1.1" over "552 5.2.2 Over quota"). An answer that says nothing leaves the field.
 */
export function moreTelling(field: string | null, quoted: string | null): string | null {
	return isVague(quoted) ? (field ?? quoted) : quoted;
}

export interface Judged extends Codes {
	action: DeliveryAction;
	/** What was said. */
	text: string;
}

/**
 * Decision 31, by the table that judges our own conversations, but by codes alone: what a report quotes may have been
 * said of the message as well as of the address, after DATA as well as at RCPT, and a wrong suppression loses a
 * reader for good. A report without a reply code is read as 550 or 450 by its status.
 */
export function judge({ action, reply_code, status, text }: Judged): { hard: boolean; why: string } {
	if (action !== 'failed') return { hard: false, why: `action ${action}: nothing bounced` };
	if (isVague(status)) return { hard: false, why: 'no code says that the address is bad' };
	const code = reply_code ?? Number(`${status?.[0]}50`);
	const reply: Reply = { phase: 'rcpt', code, enhanced: status, text };
	const { verdict, why } = classify({ kind: 'refused', reply, refusedCopies: [] });
	return { hard: verdict === 'hard', why };
}
