/** Delivery status notifications: RFC 3464, with the addresses of RFC 6533 and the xtext of RFC 3461. */
import { cleanText } from '../reply.js';
import { addressIn } from './addresses.js';
import { readCodes, readStatus } from './codes.js';
import { type Field, fieldValue, findField, isFieldStart, type Line, parseFields } from './fields.js';
import type { DeliveryAction } from './report.js';

/** The fields about one recipient, read but not judged. */
export interface StatusEntry {
	/** Final-Recipient; null when it is no address (a local name, an X.400 name). */
	final: string | null;
	/** Original-Recipient. */
	original: string | null;
	action: DeliveryAction;
	/** As the field says. */
	status: string | null;
	/** Diagnostic-Code without its type; `''` when there is none. */
	diagnostic: string;
	remote_mta: string | null;
	/** Line of the file where its fields begin. */
	line: number;
}

/** One message/delivery-status. */
export interface DeliveryStatus {
	reporting_mta: string | null;
	envelope_id: string | null;
	entries: StatusEntry[];
}

/** Names that only a delivery status has; with one of them a line opens the fields in a text without MIME. */
const opening = /^(?:Reporting-MTA|Final-Recipient|Original-Recipient|Arrival-Date|Action):[ \t]?\S/i;
const once = new Set(['final-recipient', 'original-recipient', 'action', 'status']);
const maxEntries = 1000;

/** Reads the lines of a message/delivery-status; null when they are about nobody. */
export function parseDeliveryStatus(lines: readonly Line[]): DeliveryStatus | null {
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

/** The same fields written into a text, as some systems do that know no MIME; null when there are none. */
export function parseWrittenStatus(lines: readonly Line[]): DeliveryStatus | null {
	const first = lines.findIndex(({ text }) => opening.test(text));
	if (first === -1) return null;
	return parseDeliveryStatus(lines.slice(first));
}

/** Blank lines part the groups; so does a field that can be there once only, where the blank line is forgotten. */
function groupsOf(lines: readonly Line[]): Field[][] {
	const groups: Field[][] = [];
	let from = 0;
	let seen = new Set<string>();
	const close = (to: number) => {
		const fields = parseFields(lines.slice(from, to));
		if (fields.length > 0) groups.push(fields);
		from = to;
		seen = new Set();
	};
	for (const [at, { text }] of lines.entries()) {
		if (text.trim() === '') {
			close(at);
			from = at + 1;
			continue;
		}
		const name = isFieldStart(text) ? text.slice(0, text.indexOf(':')).trim().toLowerCase() : '';
		if (!once.has(name)) continue;
		if (seen.has(name) || (name === 'original-recipient' && seen.has('status'))) close(at);
		seen.add(name);
	}
	close(lines.length);
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

/** RFC 3464 s.2.3.1: `rfc822; a@b`, RFC 6533 s.3: `utf-8; \x{E9}ric@b`. Null when that is no address. */
function recipientOf(value: string | null): string | null {
	if (value === null) return null;
	const semicolon = value.indexOf(';');
	const type = semicolon === -1 ? 'rfc822' : value.slice(0, semicolon).trim().toLowerCase();
	const text = semicolon === -1 ? value : value.slice(semicolon + 1).trim();
	return addressIn(type === 'utf-8' ? fromUtf8Xtext(text) : fromXtext(text));
}

/** Without the type in front of it: `smtp; 550 no` → `550 no`, `dns; mx.example.com` → `mx.example.com`. */
function typed(value: string): string {
	return value.replace(/^[\w-]{1,40}[ \t]*;[ \t]*/, '').trim();
}

/**
 * RFC 3461 s.4: only `+` and `=` have to be written in xtext, and only these are undone: `ann+2E@b` may be an address
 * as it stands, and hardly any `+2B` is.
 */
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
