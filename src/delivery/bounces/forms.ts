/**
 * Reports that are no RFC 3464, as data: who writes them, by which words they are known, how they name recipients and
 * where their own words end. Every expression is tried on single lines of at most 1,000 characters.
 */
import { addressSource as A } from './addresses.js';

/** Mail systems, by what stands in From. */
export const mailSystems =
	/mailer-?daemon|post_?master|mail(?:[ .-]?deliver\w{0,6})?[ .-]?(?:sub)?system|mail administrator|system administrator|mail delivery|delivery (?:subsystem|system|status)|bounces?@|^"?(?:mailer|mta)\b/i;

/** Words of a report that say so in its subject or text: somebody did not get it. */
export const failures: readonly RegExp[] = [
	/undeliver(?:able|ed)|returned mail|returned to sender|failure (?:notice|notification)|delivery (?:has )?fail(?:ed|ure)|mail(?: delivery)? fail(?:ed|ure)|delivery status notification|non-?delivery|error sending your mail|mail system error/i,
	/(?:could|can|was|were|has|have)(?: ?n[o']t| not)(?: yet)? (?:been |be )?(?:able to )?(?:deliver|reach)/i,
	/(?:unable|not able|failed) to (?:be )?deliver|not delivered to|did not reach|trouble delivering|error (?:was )?(?:delivering|encountered)|error (?:has )?occurred while (?:attempting|trying) to deliver/i,
	/(?:permanent|fatal|delivery|transient non-fatal) (?:errors?|problems?)\b|delivery to the following recipients?|delivery failed|has failed|rejected (?:recipient|by a remote)|invalid user address|requested action not taken/i,
	/transcript of session|failure reasons|mailbox exceeds allowed size|(?:recipients was|delivery) aborted|contained one or more recipient addresses that were/i,
	/配信(?:でき|に失敗|不能)|送信(?:でき|に失敗)|届けられま|エラーメール|не может быть доставлено|не доставлено|zustell|nicht zugestellt|unzustellbar|impossible de (?:remettre|délivrer)|non remis|no se (?:pudo|ha podido) entregar|退信|无法投递/i,
];

/** Words of a report that says: not yet. Then nothing has bounced. */
export const delays: readonly RegExp[] = [
	/has been delayed|is delayed|delayed for more|has not yet been delivered|delivery(?: is| has been)? delayed|only a temporary failure|still being retried|will be retried|delay reason|\(delay\)|^warning: message .{0,200} delayed|warning message only|this is a warning only|delivery status notification: warning/i,
];

/**
 * What a server says of a recipient it has given up, in a report whose fields and other words are those of a delay:
 * OpenSMTPD (6.8) ends so. The code does not tell: others write 4.4.7 into warnings.
 */
export const expiries: readonly RegExp[] = [/^envelope expired$/i];

/** Where a report turns from a recipient to its reader: nothing below is about anybody. */
export const closings: readonly RegExp[] = [
	/^\s*(?:no action is required on your part|please note that this is only a temporary failure report)\b/i,
];

/** Where the report's own words end: the returned message, or its header, follows. */
export const separators: readonly RegExp[] = [
	/^[-=*\s]{0,80}(?:(?:below|this|enclosed|included|attached|here)(?: this line)?(?: is|:)? (?:a )?copy of (?:the|your)(?: original)? (?:message|mail)|copy of (?:the|your) (?:original )?message)/i,
	/^[-=*\s]{0,80}(?:(?:the )?header of the original message|original (?:message|mail)(?: info| headers?)?(?: follows\.?)?|unsent message(?: follows| below)?|(?:returned|rejected) message|message headers? follows?\.?|message text follows|undelivered message|bounced e-?mail:)[-=*\s.:]{0,80}$/i,
	/^[-=*\s]{0,80}(?:the header of the original message is following)/i,
];

/** A line that names a failed recipient. `rest` of it, and what follows, is what was said about him. */
export interface RecipientLine {
	form: string;
	/** Groups `address` and, where something is said on the same line, `rest`. */
	line: RegExp;
	/** Also lines of other kinds look so: not believed for the sender, nor where a better line names somebody. */
	isWeak?: true;
}

const line = (source: string): RegExp => new RegExp(source, 'i');

/** The first that fits a line decides. */
export const recipientLines: readonly RecipientLine[] = [
	{ form: 'address, colon', line: line(`^\\s*<(?<address>${A})>:?\\s*(?<rest>.*)$`) },
	{ form: 'quoted address', line: line(`^\\s*"(?<address>${A})":?\\s*$`) },
	{ form: 'arrowed address', line: line(`^>>> (?<address>${A})(?: <[^>]{0,255}>)?\\s*$`) },
	{
		form: 'SMTP dialogue',
		line: line(`^\\s*(?:Sent )?(?:>>> )?RCPT TO:\\s*<?(?<address>${A})>?`),
		isWeak: true,
	},
	{
		form: 'sendmail',
		line: line(`^(?<rest>[45]\\d\\d[ -](?:[45]\\.\\d\\.\\d{1,3} )?<?(?<address>${A})>?\\.\\.\\. .*)$`),
	},
	{
		form: 'labelled',
		line: line(
			`^\\s*(?:final[- ])?(?:recipient|address|user|to recipient)s?:\\s*<?(?<address>${A})>?\\s*(?<rest>.*)$`,
		),
	},
	{ form: 'bracketed record', line: line(`^\\[.{0,80}\\bAddress: <(?<address>${A})>,?\\s*(?<rest>.*)\\]`) },
	{ form: 'Exchange', line: line(`^\\s*(?<address>${A}) on (?<rest>\\S.*)$`) },
	{ form: 'bracketed reason', line: line(`^\\s*(?<address>${A})\\s+\\[(?<rest>[^\\]]{1,200})\\]\\s*$`) },
	{ form: 'Zoho', line: line(`^\\s*(?<address>${A})\\s+(?<rest>Invalid Address, .*)$`) },
	{ form: 'bulleted', line: line(`^\\s*[*•-] <?(?<address>${A})>?\\s*$`) },
	{ form: 'address, words', line: line(`^\\s*(?<address>${A})(?: <[^<>]{0,255}>)?:\\s+(?<rest>\\S.*)$`) },
	{
		form: 'sentence',
		line: line(
			`(?:not be delivered to|not delivered to|unable to deliver (?:your )?(?:message|mail)? ?to|error (?:was )?(?:delivering|sending) your (?:mail|message) to|undeliverable to|delivery to|failed to deliver to|rejected recipient|delivery failed \\d{1,4} attempts|exceeds allowed size|user not found|no such user|gateway for)\\s?:?\\s*<?(?<address>${A})>?(?<rest>.*)$`,
		),
	},
	{ form: 'address alone', line: line(`^\\s*<?(?<address>${A})>?:?\\s*$`), isWeak: true },
];
