import type { Reply } from '../../engine/rules/outcomes.js';
import { classify, isVague } from '../reply.js';
import type { Place } from './mime.js';
import { expiries } from './wordings.js';

/** Actions of RFC 3464 s.2.3.3. Only `failed` is a bounce: a `delayed` mail may still arrive. */
export type DeliveryAction = 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded';

export const inReturnedOnly = 'returned message';

export const notJudged = 'only the returned message names this address: noted, not judged';

interface Verdict {
	/** The address is invalid and must be suppressed (api-decisions 31). */
	hard: boolean;
	/** The server refuses the sender or the content, so nothing counts against the address (api-decisions 45). */
	uncounted?: true;
	why: string;
}

export interface ReportedRecipient extends Verdict {
	address: string;
	/** The original recipient, if the report names it separately (RFC 3461 ORCPT). */
	original_address: string | null;
	action: DeliveryAction;
	status: string | null;
	reply_code: number | null;
	diagnostic: string | null;
	remote_mta: string | null;
	form: string;
	place: Place;
}

export interface ReturnedMessage {
	message_id: string | null;
	subject: string | null;
	to: string[];
	x_headers: Record<string, string>;
	place: Place;
}

export interface DeliveryReport {
	kind: 'bounce' | 'delivery_notice';
	reporting_mta: string | null;
	envelope_id: string | null;
	recipients: ReportedRecipient[];
	returned: ReturnedMessage | null;
}

/** RFC 5965. `complaint`: the recipient wants no more mail. `feedback`: another type, which mailctl ignores. */
export interface FeedbackReport {
	kind: 'complaint' | 'feedback';
	feedback_type: string;
	recipients: string[];
	user_agent: string | null;
	envelope_id: string | null;
	returned: ReturnedMessage | null;
	place: Place;
}

export type Report =
	| DeliveryReport
	| FeedbackReport
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

// Matches a reply code, but not a number in an address literal, a size or a version.
const replyCode =
	/(?:^|[\s:("'[<])([45][0-7]\d)(?=[\s\-:,;)\]]|$)(?!(?:\s|-)(?:bytes|characters|seconds|hours|recipients|messages|kb|mb)\b)/gi;
const innerCode = /\.\.\.\s(5[0-5]\d)\s/;
const enhancedCode = /(?:^|[^\d.])([245]\.[0-7]\.\d{1,3})(?!\.?\d)/g;

export function readCodes(text: string): Codes {
	const codes = [...text.matchAll(replyCode)].map((match) => Number(match[1]));
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

/** Prefers `quoted` (from the refusing server) to `field` (from the reporting server), unless `quoted` is vague. */
export function moreTelling(field: string | null, quoted: string | null): string | null {
	return isVague(quoted) ? (field ?? quoted) : quoted;
}

export interface Judged extends Codes {
	action: DeliveryAction;
	text: string;
}

export function judge({ action, reply_code, status, text }: Judged): Verdict {
	if (action !== 'failed') return { hard: false, why: `action ${action}: nothing bounced` };
	// The report does not say whether the server refused the recipient (RCPT) or the message (after DATA).
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
