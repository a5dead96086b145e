/** A mail that came back, understood: a bounce, a complaint, an automatic answer, or none of these. */

import { readFeedback } from './arf.js';
import { autoReplySign, plainAutoReplySign } from './auto-reply.js';
import { judge, moreTelling, readCodes } from './codes.js';
import { type DeliveryStatus, parseDeliveryStatus, parseWrittenStatus, type StatusEntry } from './dsn.js';
import {
	findNotice,
	isFromMailSystem,
	isNamedMailSystem,
	type Notice,
	namedAs,
	readInformal,
} from './informal.js';
import { type Mail, type Part, parseMail } from './mime.js';
import { finalAction, judgeNamed } from './named.js';
import type { DeliveryReport, Report, ReportedRecipient } from './report.js';
import { findReturned, ownLines } from './returned.js';
import { readSes } from './ses.js';

/**
 * Reads one mail as it arrived, its header included, or what SES publishes instead of one. Formal reports (RFC 3464, RFC 5965) before the forms of single
 * systems, and those before automatic answers, which share their header fields. Never throws; at most 4 MiB are read.
 */
export function readReport(bytes: Buffer): Report {
	const published = readSes(bytes);
	if (published !== null) return published;
	const mail = parseMail(bytes);
	const feedback = readFeedback(mail);
	if (feedback !== null) return feedback;
	const notice = findNotice(mail);
	const formal = readFormal(mail, notice);
	if (formal !== null) return formal;
	const plain = plainAutoReplySign(mail.fields);
	const informal = plain === null ? readInformal(mail, notice) : null;
	if (informal !== null) {
		const recipients = informal.recipients.map((one) => judgeNamed(one, informal.action));
		return reportOf(mail, recipients, null);
	}
	// What a mail system sends of itself is no answer, though it may say so.
	const sign = plain ?? (isNamedMailSystem(mail) ? null : autoReplySign(mail.fields));
	if (sign !== null) {
		return { kind: 'auto_reply', why: sign.why, place: { part: '1', type: typeOf(mail), line: sign.line } };
	}
	return { kind: 'not_a_report', why: 'neither a report by its parts nor by its words' };
}

/** RFC 3464: a part of that type; else its fields in the text of a mail system. */
function readFormal(mail: Mail, notice: Notice | null): DeliveryReport | null {
	for (const { part, status } of statusesOf(mail, notice)) {
		const recipients = status.entries.flatMap((entry) => judgedFormal(entry, { mail, notice, part }));
		if (recipients.length > 0) return reportOf(mail, recipients, status);
	}
	return null;
}

function statusesOf(mail: Mail, notice: Notice | null): { part: Part; status: DeliveryStatus }[] {
	const parts = mail.parts.filter(({ type }) => /^message\/(?:global-)?delivery-status$/.test(type));
	const formal = parts.flatMap((part) => statusIn(part, parseDeliveryStatus(part.lines())));
	if (formal.length > 0 || notice === null || !isFromMailSystem(mail)) return formal;
	const texts = mail.parts.filter((part) => part.type === 'text/plain' && part !== notice.part);
	return [
		...statusIn(notice.part, parseWrittenStatus(notice.lines)),
		...texts.flatMap((part) => statusIn(part, parseWrittenStatus(ownLines(part.lines())))),
	];
}

function statusIn(part: Part, status: DeliveryStatus | null): { part: Part; status: DeliveryStatus }[] {
	return status === null ? [] : [{ part, status }];
}

function judgedFormal(
	entry: StatusEntry,
	{ mail, notice, part }: { mail: Mail; notice: Notice | null; part: Part },
): ReportedRecipient[] {
	const address = entry.final ?? entry.original ?? onlyReturned(mail);
	if (address === null) return [];
	const named = notice === null ? null : namedAs(notice, address);
	const own = readCodes(entry.diagnostic);
	// Without a code of its own, the answer may be in the words for people.
	const isSilent = own.reply_code === null && own.status === null;
	const detail = isSilent ? (named?.detail ?? '') : '';
	const codes = isSilent ? readCodes(detail) : own;
	const status = moreTelling(entry.status, codes.status);
	const diagnostic = entry.diagnostic === '' ? detail : entry.diagnostic;
	const text = `${entry.diagnostic} ${detail}`;
	const action = finalAction(entry.action, detail);
	return [
		{
			address,
			original_address: entry.original,
			action,
			status,
			reply_code: codes.reply_code,
			diagnostic: diagnostic === '' ? null : diagnostic,
			remote_mta: entry.remote_mta,
			...judge({ action, reply_code: codes.reply_code, status, text }),
			form: 'RFC 3464',
			place: { part: part.path, type: part.type, line: entry.line },
		},
	];
}

function onlyReturned(mail: Mail): string | null {
	const to = findReturned(mail)?.to ?? [];
	return to.length === 1 ? (to[0] ?? null) : null;
}

function reportOf(
	mail: Mail,
	recipients: ReportedRecipient[],
	status: DeliveryStatus | null,
): DeliveryReport {
	return {
		kind: recipients.some(({ action }) => action === 'failed') ? 'bounce' : 'delivery_notice',
		reporting_mta: status?.reporting_mta ?? null,
		envelope_id: status?.envelope_id ?? null,
		recipients,
		returned: findReturned(mail),
	};
}

function typeOf(mail: Mail): string {
	return mail.parts[0]?.type ?? 'text/plain';
}
