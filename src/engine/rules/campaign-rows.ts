import { hash, randomUUID } from 'node:crypto';
import { type EmailKey, parseAddress } from '../../api/address.js';
import { createTurns } from '../../api/backoff.js';
import { requestIdentity } from '../../api/campaign-identity.js';
import { type Day, type Micros, microsPerMs } from '../../api/datetime.js';
import { type FieldErrors, listFieldErrors } from '../../api/errors.js';
import type { SendRequest } from '../../api/inputs.js';
import { isRecord } from '../../api/json.js';
import { type CheckedSend, maxVariables, sendFields } from '../../api/messages.js';
import type { Uuid } from '../../api/records.js';
import { char, dict, integer, json, nullable, optional, withDefault } from '../../api/schema/fields.js';
import { typeName } from '../../api/schema/python.js';
import { texts } from '../../api/schema/texts.js';
import { fieldSet, type Parsed, required } from '../../api/schema.js';
import { hasDefault, referencePattern, variablesIn } from '../../api/variables.js';

export interface RefusedRow extends RowPlace {
	kind: 'rejected';
	code: string;
	error: string;
}

interface RowPlace {
	to?: string;
	line?: number;
}

export type RecipientRow =
	| {
			kind: 'recipient';
			to: string;
			to_key: string;
			context: Readonly<Record<string, string>>;
			line?: number;
	  }
	| RefusedRow;

export type Courier = 'smtp' | 'api';

export type ParsedRequest =
	| {
			kind: 'request';
			send: CheckedSend;
			alike: string;
			given: Omit<SendRequest, 'to'>;
			line?: number;
	  }
	| RefusedRow;

const placeFields = {
	line: optional(integer({ min: 0 })),
	refused: optional(dict(char({ max: 1000 }), { max: 2 })),
};

const recipientFields = fieldSet({
	to: char({ allowBlank: true }),
	context: withDefault(dict(char({ allowBlank: true, trim: 'off' }), { max: maxVariables }), () => ({})),
	...placeFields,
});

const requestFields = fieldSet({ request: optional(nullable(json())), ...placeFields });

const maxListed = 100;

export function parseRecipients(recipients: unknown): Promise<Parsed<RecipientRow[]>> {
	return parseEach('recipients', recipients, maxListed, parseRecipient);
}

export function parseRequests(requests: unknown, courier: Courier): Promise<Parsed<ParsedRequest[]>> {
	return parseEach('requests', requests, 1, (item) => parseRequest(item, courier));
}

async function parseEach<Row>(
	key: string,
	items: unknown,
	listed: number,
	parse: (item: unknown) => Parsed<Row>,
): Promise<Parsed<Row[]>> {
	const refuse = (errors: FieldErrors[string]) =>
		({ kind: 'invalid', errors: { [key]: errors } }) satisfies Parsed<Row[]>;
	if (items === undefined) return refuse([required]);
	if (!Array.isArray(items)) {
		const message = `Expected a list of items but got type "${typeName(items)}".`;
		return refuse([{ code: 'not_a_list', message }]);
	}
	const rows: Row[] = [];
	const misshapen: [string, FieldErrors][] = [];
	const turn = createTurns();
	for (const [index, item] of items.entries()) {
		await turn();
		const parsed = parse(item);
		if (parsed.kind === 'valid') rows.push(parsed.value);
		else misshapen.push([String(index), parsed.errors]);
		if (misshapen.length === listed) break;
	}
	return misshapen.length === 0 ? { kind: 'valid', value: rows } : refuse(Object.fromEntries(misshapen));
}

const ofValues: ReadonlySet<string> = new Set([
	'blank',
	'max_length',
	'null_characters_not_allowed',
	'surrogate_characters_not_allowed',
]);

export function parseRecipient(item: unknown): Parsed<RecipientRow> {
	const parsed = recipientFields.parse(item, 'create');
	if (parsed.kind === 'invalid') {
		const complaints = listFieldErrors(parsed.errors);
		const [first] = complaints;
		if (first === undefined || complaints.some(({ code }) => !ofValues.has(code))) return parsed;
		return rejected(placeIn(item), first.code, `${first.path}: ${first.message}`);
	}
	const { to, context, refused, ...place } = parsed.value;
	const row = { ...place, to };
	if (refused !== undefined) return rejected(row, refused['code'], refused['error']);
	if (to === '') return rejected(row, 'blank', `to: ${texts.blank}`);
	const address = parseAddress(to);
	if (address === null) return rejected(row, 'invalid', `to: ${texts.email}`);
	const { address: text, key } = address;
	return { kind: 'valid', value: { kind: 'recipient', ...place, to: text, to_key: key, context } };
}

function placeIn(item: unknown): RowPlace {
	if (!isRecord(item)) return {};
	const { to, line } = item;
	return {
		...(typeof to === 'string' && { to: to.slice(0, 320) }),
		...(typeof line === 'number' && Number.isSafeInteger(line) && { line }),
	};
}

function rejected(place: RowPlace, code = 'invalid', error = ''): { kind: 'valid'; value: RefusedRow } {
	return { kind: 'valid', value: { ...place, kind: 'rejected', code, error } };
}

export function parseRequest(item: unknown, courier: Courier): Parsed<ParsedRequest> {
	const parsed = requestFields.parse(item, 'create');
	if (parsed.kind === 'invalid') return parsed;
	const { request, refused, ...place } = parsed.value;
	if (refused !== undefined) return rejected({ ...place, to: '' }, refused['code'], refused['error']);
	return { kind: 'valid', value: checkedRequest(request, place, courier) };
}

export function refusedRequest(to: string, errors: FieldErrors, place: { line?: number }): RefusedRow {
	const [first] = listFieldErrors(errors);
	const error = first === undefined ? 'The request is refused.' : `${first.path}: ${first.message}`;
	return { ...place, kind: 'rejected', code: first?.code ?? 'invalid', error, to };
}

function checkedRequest(request: unknown, place: { line?: number }, courier: Courier): ParsedRequest {
	const parsed = sendFields.parse(request);
	if (parsed.kind === 'invalid') return refusedRequest(addressesOf(request), parsed.errors, place);
	const { value: send } = parsed;
	const unknown = courier === 'api' ? oursIn(send) : null;
	if (unknown !== null) return refusedRequest(addressesOf(request), unknown, place);
	if (send.campaign_unique_id !== null) {
		const message = 'All requests of a batch belong to one campaign: leave this field out.';
		const errors = { campaign_unique_id: [{ code: 'invalid', message }] };
		return refusedRequest(addressesOf(request), errors, place);
	}
	const { to: _, ...given } = request as SendRequest;
	return { kind: 'request', send, alike: requestIdentity(send), given, ...place };
}

function oursIn(send: CheckedSend): FieldErrors | null {
	const ours = (['list_id', 'campaign_unique_id', 'attachments'] as const).find(
		(name) => (send[name] ?? null) !== null,
	);
	if (ours !== undefined)
		return { [ours]: [{ code: 'invalid', message: 'this service does not support this field.' }] };
	const texts = (['subject', 'text_body', 'html_body'] as const).find((name) =>
		variablesIn(send[name] ?? '').some(hasDefault),
	);
	if (texts === undefined) return null;
	return {
		[texts]: [{ code: 'invalid', message: 'this service does not support default values of variables.' }],
	};
}

function addressesOf(request: unknown): string {
	const to = isRecord(request) ? request['to'] : undefined;
	const addresses = Array.isArray(to) ? to : [to];
	return addresses
		.filter((one) => typeof one === 'string')
		.join(', ')
		.slice(0, 320);
}

/** UUID version 7 (RFC 9562 s.5.7). */
export function newUuid(now: Micros): Uuid {
	const time = Math.floor(now / microsPerMs)
		.toString(16)
		.padStart(12, '0');
	return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

/** UUID version 8 (RFC 9562 s.5.8). */
export function messageUuid(campaign: Uuid, address: EmailKey): Uuid {
	const digits = hash('sha256', `${campaign}\0${address}`);
	const variant = ((Number.parseInt(digits.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
	return [
		campaign.slice(0, 8),
		digits.slice(8, 12),
		`8${digits.slice(13, 16)}`,
		`${variant}${digits.slice(18, 20)}`,
		digits.slice(20, 32),
	].join('-');
}

const maxLength = 40;

export function campaignName(about: string, day: Day): string {
	const words = about
		.replace(referencePattern(), ' ')
		.normalize('NFC')
		.toLowerCase()
		.split(/[^\p{L}\p{M}\p{N}]+/u)
		.filter((word) => word !== '');
	let name = '';
	for (const word of words) {
		const longer = name === '' ? [...word].slice(0, maxLength).join('') : `${name}-${word}`;
		if (longer.length > maxLength) break;
		name = longer;
	}
	return `${name === '' ? 'campaign' : name}-${day}`;
}
