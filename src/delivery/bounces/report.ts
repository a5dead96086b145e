/** What a mail that came back to us says, once it is understood; the words of RFC 3464 and RFC 5965. */

/** RFC 3464 s.2.3.3. Only `failed` is a bounce: `delayed` is still on its way. */
export type DeliveryAction = 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded';

/** Where something was found. */
export interface Place {
	/** `1` is the mail itself, `1.2` its second part. */
	part: string;
	/** Media type of that part, lower case. */
	type: string;
	/** Line of the file, from 1. Inside an encoded part: the line where the encoded text begins. */
	line: number;
}

/** What became of one recipient. */
export interface ReportedRecipient {
	/** The mailbox that failed, as the reporting server names it. */
	address: string;
	/** The address we sent to, where the report tells it apart (Original-Recipient, RFC 3461 ORCPT); else null. */
	original_address: string | null;
	action: DeliveryAction;
	/** Enhanced status code (RFC 3463), `5.1.1`; null where the report has none. */
	status: string | null;
	/** SMTP reply code; null where the report has none. */
	reply_code: number | null;
	/** What the refusing server said: one line, at most 500 characters; null when nothing is told. */
	diagnostic: string | null;
	/** The server that refused (Remote-MTA); null when not told. */
	remote_mta: string | null;
	/** The address itself is no good and is to be suppressed (decision 31); false for every action but `failed`. */
	hard: boolean;
	/** The rule that decided `hard`, for people. */
	why: string;
	/** How it was recognised: `RFC 3464`, or the name of an informal form. */
	form: string;
	place: Place;
}

/** The message that came back within the report, as far as it was returned. */
export interface ReturnedMessage {
	/** Without angle brackets; null when the header did not come back. */
	message_id: string | null;
	subject: string | null;
	/** Addresses of To, at most 50. */
	to: string[];
	/** Its own X- header fields, names in lower case. */
	x_headers: Record<string, string>;
	place: Place;
}

/** A report on delivery; `bounce` when at least one recipient failed, else `delivery_notice` (delays, receipts). */
export interface DeliveryReport {
	kind: 'bounce' | 'delivery_notice';
	/** The server that wrote the report; null when not told. */
	reporting_mta: string | null;
	/** RFC 3461 ENVID of the submission; null when not told. */
	envelope_id: string | null;
	/** At least one. */
	recipients: ReportedRecipient[];
	returned: ReturnedMessage | null;
}

/**
 * A feedback report (RFC 5965). `complaint`: a person wants no more of it (abuse, fraud, opt-out); `feedback`: any
 * other type (not-spam, auth-failure, virus …), from which nothing follows for the recipient.
 */
export interface FeedbackReport {
	kind: 'complaint' | 'feedback';
	/** Lower case, as sent: `abuse`. */
	feedback_type: string;
	/** Who complained: Original-Rcpt-To, else the returned message's own header; empty when it was blanked out. */
	recipients: string[];
	/** Program that wrote the report; null when not told. */
	user_agent: string | null;
	/** RFC 3461 ENVID of the submission; null when not told. */
	envelope_id: string | null;
	returned: ReturnedMessage | null;
	place: Place;
}

/** What `readReport` makes of a mail. */
export type Report =
	| DeliveryReport
	| FeedbackReport
	/** A machine answered for a person (RFC 3834): the mail arrived. */
	| { kind: 'auto_reply'; why: string; place: Place }
	| { kind: 'not_a_report'; why: string };
