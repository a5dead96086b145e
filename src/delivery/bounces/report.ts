import type { Reply } from '../../engine/rules/outcomes.js';
import { classify, isVague } from '../reply.js';
import { expiries } from './wordings.js';

/** RFC 3464 s.2.3.3. Only `failed` is a bounce: `delayed` is still on its way. */
export type DeliveryAction = 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded';

export interface Place {
	part: string;
	type: string;
	/** Line of the file, from 1. Inside an encoded part: the line where the encoded text begins. */
	line: number;
}

export const inReturnedOnly = 'returned message';

export const notJudged = 'only the returned message names this address: noted, not judged';

interface Verdict {
	/** The address itself is invalid and is to be suppressed (decision 31); false for every action but `failed`. */
	hard: boolean;
	/** The sender or the content is refused: it is not a bounce of the address (decision 45). */
	uncounted?: true;
	why: string;
}

export interface ReportedRecipient extends Verdict {
	/** The mailbox that failed, as the reporting server names it (Final-Recipient, RFC 3464 s.2.3.2). */
	address: string;
	/** The address we sent to, where the report names it separately (Original-Recipient, RFC 3461 ORCPT); else null. */
	original_address: string | null;
	action: DeliveryAction;
	/** Enhanced status code (RFC 3463), `5.1.1`; null where the report has none. */
	status: string | null;
	/** SMTP reply code; null where the report has none. */
	reply_code: number | null;
	diagnostic: string | null;
	remote_mta: string | null;
	form: string;
	place: Place;
}

export interface ReturnedMessage {
	/** Without angle brackets; null when the header did not come back. */
	message_id: string | null;
	subject: string | null;
	to: string[];
	x_headers: Record<string, string>;
	place: Place;
}

/** A report on delivery; `bounce` when at least one recipient failed, else `delivery_notice` (delays, receipts). */
export interface DeliveryReport {
	kind: 'bounce' | 'delivery_notice';
	reporting_mta: string | null;
	/** RFC 3461 ENVID of the submission; null when unknown. */
	envelope_id: string | null;
	recipients: ReportedRecipient[];
	returned: ReturnedMessage | null;
}

/**
 * A feedback report (RFC 5965). `complaint`: a person wants no more mail (abuse, fraud, opt-out); `feedback`: any other
 * type (not-spam, auth-failure, virus …), without consequence for the recipient.
 */
export interface FeedbackReport {
	kind: 'complaint' | 'feedback';
	feedback_type: string;
	/**
	 * The addresses of the complaint: Original-Rcpt-To, else the returned message's own header; empty where they were
	 * removed.
	 */
	recipients: string[];
	user_agent: string | null;
	/** RFC 3461 ENVID of the submission; null when unknown. */
	envelope_id: string | null;
	returned: ReturnedMessage | null;
	place: Place;
}

export type Report =
	| DeliveryReport
	| FeedbackReport
	/** A program answered for a person (RFC 3834): the mail arrived. */
	| { kind: 'auto_reply'; why: string; place: Place }
	| { kind: 'not_a_report'; why: string };

export function deliveryReport(
	recipients: ReportedRecipient[],
	{
		returned,
		reporting_mta = null,
		envelope_id = null,
	}: Pick<DeliveryReport, 'returned'> & Partial<Pick<DeliveryReport, 'reporting_mta' | 'envelope_id'>>,
): DeliveryReport {
	const isBounce = recipients.some(({ action }) => action === 'failed');
	return { kind: isBounce ? 'bounce' : 'delivery_notice', reporting_mta, envelope_id, recipients, returned };
}

export interface Codes {
	reply_code: number | null;
	status: string | null;
}

// Not part of an address literal, a size or a version; `4xx` and `5xx` with a second digit that SMTP uses.
const replyCode =
	/(?:^|[\s:("'[<])([45][0-7]\d)(?=[\s\-:,;)\]]|$)(?!(?:\s|-)(?:bytes|characters|seconds|hours|recipients|messages|kb|mb)\b)/gi;
const innerCode = /\.\.\.\s(5[0-5]\d)\s/;
const enhancedCode = /(?:^|[^\d.])([245]\.[0-7]\.\d{1,3})(?!\.?\d)/g;

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

export function hasCode(text: string): boolean {
	const { reply_code, status } = readCodes(text);
	return reply_code !== null || status !== null;
}

export function readStatus(value: string): string | null {
	return /(?:^|[^\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(value)?.[1] ?? null;
}

/**
 * The more specific of two codes. The reply that a report quotes comes from the refusing server, the report's field
 * from another program's interpretation ("5.1.1" over "552 5.2.2 Over quota"). Where the reply is vague, the field
 * counts.
 */
export function moreTelling(field: string | null, quoted: string | null): string | null {
	return isVague(quoted) ? (field ?? quoted) : quoted;
}

export interface Judged extends Codes {
	action: DeliveryAction;
	text: string;
}

/**
 * Decision 31, by the table for our own conversations. A report without a reply code is read as 550 or 450 by its status.
 */
export function judge({ action, reply_code, status, text }: Judged): Verdict {
	if (action !== 'failed') return { hard: false, why: `action ${action}: nothing bounced` };
	// A quoted reply may be one to RCPT or one after DATA.
	const reply: Reply = {
		...{ phase: 'answer', code: reply_code ?? Number(`${status?.[0] ?? 5}50`) },
		...{ enhanced: status, text },
	};
	const { verdict, why } = classify({ kind: 'refused', reply });
	if (verdict === 'sender' || verdict === 'content') return { hard: false, uncounted: true, why };
	const isUntold = verdict === 'failed' && isVague(status);
	return { hard: verdict === 'hard', why: isUntold ? 'no code says that the address is bad' : why };
}

export interface Statement {
	address: string;
	/** The address that the mail was sent to (`expanded from`); null when the report does not name it. */
	original: string | null;
	detail: string;
	form: string;
	place: Place;
}

export function judgeStatement(
	{ address, original, detail, form, place }: Statement,
	told: DeliveryAction,
): ReportedRecipient {
	const codes = readCodes(detail);
	const action = finalAction(told, detail);
	return {
		address,
		original_address: original,
		action,
		...codes,
		diagnostic: detail === '' ? null : detail,
		remote_mta: null,
		...judge({ action, ...codes, text: detail }),
		form,
		place,
	};
}

export function finalAction(action: DeliveryAction, detail: string): DeliveryAction {
	return action === 'delayed' && expiries.some((one) => one.test(detail)) ? 'failed' : action;
}
