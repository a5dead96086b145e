import { cleanText } from '../reply.js';
import { addressIn } from './addresses.js';
import { aboutAddress, type Extract, Notice, ownLines } from './extract.js';
import { type Field, fieldValue, findField, type Line, type Part, parseFields, placeOf } from './mime.js';
import {
	type DeliveryAction,
	type DeliveryReport,
	deliveryReport,
	finalAction,
	inReturnedOnly,
	judge,
	moreTelling,
	notJudged,
	type ReportedRecipient,
	type ReturnedMessage,
	readCodes,
	readStatus,
} from './report.js';

interface StatusEntry {
	final: string | null;
	original: string | null;
	action: DeliveryAction;
	status: string | null;
	diagnostic: string;
	remote_mta: string | null;
	line: number;
}

interface DeliveryStatus {
	reporting_mta: string | null;
	envelope_id: string | null;
	entries: StatusEntry[];
}

/** Only a delivery status has these fields. In a text without MIME, the first such field begins the status. */
const opening = /^(?:Reporting-MTA|Final-Recipient|Original-Recipient|Arrival-Date|Action):[ \t]?\S/i;
const once = new Set(['final-recipient', 'original-recipient', 'action', 'status']);
const maxEntries = 1000;

/** RFC 3464 s.2.1: a group of fields for the message, then a group for each recipient. */
function parseDeliveryStatus(lines: readonly Line[]): DeliveryStatus | null {
	const groups = groupsOf(lines);
	const entries = groups.filter(isAboutRecipient).slice(0, maxEntries).map(entryFrom);
	if (entries.length === 0) return null;
	const all = groups.flat();
	const envelope = fieldValue(all, 'original-envelope-id');
	return {
		reporting_mta: typed(fieldValue(all, 'reporting-mta') ?? '') || null,
		envelope_id: envelope === null ? null : fromXtext(envelope),
		entries,
	};
}

function writtenStatusAt(lines: readonly Line[]): number {
	return lines.findIndex(({ text }) => opening.test(text));
}

function groupsOf(lines: readonly Line[]): Field[][] {
	const groups: Field[][] = [];
	let from = 0;
	for (let at = 0; at <= lines.length; at += 1) {
		const text = lines[at]?.text ?? '';
		if (text.trim() !== '') continue;
		groups.push(...parted(parseFields(lines.slice(from, at))));
		from = at + 1;
	}
	return groups.filter((fields) => fields.length > 0);
}

/** Splits recipients that no blank line separates. An Original-Recipient after a Status starts the next recipient. */
function parted(fields: Field[]): Field[][] {
	const names = fields.map(({ name }) => name);
	const key = ['final-recipient', 'original-recipient', 'action'].find((name) => names.includes(name)) ?? '';
	if (names.indexOf(key) === names.lastIndexOf(key)) return [fields];
	const groups: Field[][] = [];
	let seen = new Set<string>();
	for (const field of fields) {
		const isNext = seen.has(field.name) || (field.name === 'original-recipient' && seen.has('status'));
		if (groups.length === 0 || (once.has(field.name) && isNext)) {
			groups.push([]);
			seen = new Set();
		}
		groups.at(-1)?.push(field);
		seen.add(field.name);
	}
	return groups;
}

function isAboutRecipient(group: readonly Field[]): boolean {
	const has = (name: string) => findField(group, name) !== null;
	return has('final-recipient') || has('original-recipient') || (has('action') && has('status'));
}

function entryFrom(group: readonly Field[]): StatusEntry {
	const status = readStatus(fieldValue(group, 'status') ?? '');
	const diagnostic = cleanText(typed(fieldValue(group, 'diagnostic-code') ?? ''));
	const final = recipientOf(fieldValue(group, 'final-recipient'));
	const original = recipientOf(fieldValue(group, 'original-recipient'));
	return {
		final: final ?? recipientOf(fieldValue(group, 'x-actual-recipient')),
		original,
		action: actionOf(fieldValue(group, 'action'), status ?? readCodes(diagnostic).status),
		status,
		diagnostic,
		remote_mta: typed(fieldValue(group, 'remote-mta') ?? '') || null,
		line: group[0]?.line ?? 1,
	};
}

/** Reads `rfc822; a@b` (RFC 3464 s.2.3.1) or `utf-8; \x{E9}ric@b` (RFC 6533 s.3). */
function recipientOf(value: string | null): string | null {
	if (value === null) return null;
	const semicolon = value.indexOf(';');
	const type = semicolon === -1 ? 'rfc822' : value.slice(0, semicolon).trim().toLowerCase();
	const text = semicolon === -1 ? value : value.slice(semicolon + 1).trim();
	return addressIn(type === 'utf-8' ? fromUtf8Xtext(text) : fromXtext(text));
}

function typed(value: string): string {
	return value.replace(/^[\w-]{1,40}[ \t]*;[ \t]*/, '').trim();
}

/** Decodes only `+2B` and `+3D`, which RFC 3461 s.4 requires. `ann+2E@b` may be a real address. */
function fromXtext(text: string): string {
	return text.replace(/\+2B/g, '+').replace(/\+3D/g, '=');
}

function fromUtf8Xtext(text: string): string {
	return text.replace(/\\x\{([0-9a-f]{1,6})\}/gi, (whole, hex: string) => {
		const point = Number.parseInt(hex, 16);
		return point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) ? whole : String.fromCodePoint(point);
	});
}

function actionOf(value: string | null, status: string | null): DeliveryAction {
	const word = /^[a-z]+/.exec((value ?? '').toLowerCase())?.[0] ?? '';
	switch (word) {
		case 'failed':
		case 'delayed':
		case 'delivered':
		case 'relayed':
		case 'expanded':
			return word;
		default:
			return status?.startsWith('2') === true ? 'delivered' : word === 'deferred' ? 'delayed' : 'failed';
	}
}

interface FoundStatus {
	part: Part;
	status: DeliveryStatus;
	notice: Notice | null;
}

export function readDeliveryStatus(found: Extract): DeliveryReport | null {
	for (const { status, part, notice } of statusesIn(found)) {
		const recipients = status.entries.flatMap((entry) =>
			judgeEntry(entry, { part, notice, returned: found.returned }),
		);
		if (recipients.length > 0) return deliveryReport(recipients, { ...status, returned: found.returned });
	}
	return null;
}

function statusesIn({ mail, sender, notice }: Extract): FoundStatus[] {
	// A person may forward a report. The forwarding mail is not of the type `multipart/report`.
	if (sender === 'person' && mail.type !== 'multipart/report') return [];
	if (mail.parts.some(({ type }) => type === 'message/feedback-report')) return [];
	const parts = mail.parts.filter(({ type }) => /^message\/(?:global-)?delivery-status$/.test(type));
	const formal = parts.flatMap((part) => {
		const status = parseDeliveryStatus(part.lines());
		return status === null ? [] : [{ part, status, notice }];
	});
	if (formal.length > 0 || notice === null || sender === 'person' || sender === 'unknown') return formal;
	const texts = mail.parts.filter((part) => part.type === 'text/plain' && part !== notice.part);
	return [notice, ...texts.map((part) => ({ part, lines: ownLines(part.lines()) }))].flatMap(
		({ part, lines }) => {
			const at = writtenStatusAt(lines);
			const status = at === -1 ? null : parseDeliveryStatus(lines.slice(at));
			if (status === null) return [];
			return [{ part, status, notice: part === notice.part ? new Notice(part, lines.slice(0, at)) : notice }];
		},
	);
}

function judgeEntry(
	entry: StatusEntry,
	{ part, notice, returned }: Pick<FoundStatus, 'part' | 'notice'> & Pick<Extract, 'returned'>,
): ReportedRecipient[] {
	const told = entry.final ?? entry.original;
	const address = told ?? onlyRecipient(returned);
	if (address === null) return [];
	const inText = notice === null ? null : aboutAddress(notice, address);
	const own = readCodes(entry.diagnostic);
	// If Diagnostic-Code has no code, the human-readable text may quote the reply.
	const isSilent = own.reply_code === null && own.status === null;
	const detail = isSilent ? (inText?.detail ?? '') : '';
	const codes = isSilent ? readCodes(detail) : own;
	const status = moreTelling(entry.status, codes.status);
	const diagnostic = entry.diagnostic === '' ? detail : entry.diagnostic;
	const text = `${entry.diagnostic} ${inText?.detail ?? ''}`;
	const action = finalAction(entry.action, detail);
	const verdict = judge({ action, reply_code: codes.reply_code, status, text });
	return [
		{
			address,
			original_address: entry.original,
			action,
			status,
			reply_code: codes.reply_code,
			diagnostic: diagnostic === '' ? null : diagnostic,
			remote_mta: entry.remote_mta,
			...(told === null && inText === null ? { hard: false, why: notJudged } : verdict),
			form: told === null ? inReturnedOnly : 'RFC 3464',
			place: placeOf({ ...part, line: entry.line }),
		},
	];
}

function onlyRecipient(returned: ReturnedMessage | null): string | null {
	const [first = null, second] = returned?.to ?? [];
	return second === undefined ? first : null;
}
