/** A batch of send requests: what has the wrong shape refuses it whole, what a send call would refuse its row alone. */
import type { FieldErrors } from '../../api/errors.js';
import { type CheckedSend, sendFields } from '../../api/messages.js';
import { json } from '../../api/schema/containers.js';
import { nullable, optional } from '../../api/schema/field.js';
import { isRecord, typeName } from '../../api/schema/python.js';
import { fieldSet, type Parsed, required } from '../../api/schema.js';
import type { RequestedRow } from '../../store/mailings.js';
import { complaintsOf } from './complaints.js';
import { canonicalJson } from './ids.js';
import { refusalOf, rowPlaceFields } from './row-place.js';

/** A checked request whose template is not read yet; `alike` is equal for requests that differ in `to` alone. */
export type ParsedRequest =
	| { kind: 'request'; send: CheckedSend; alike: string; line?: number }
	| Extract<RequestedRow, { kind: 'rejected' }>;

const declared = fieldSet({ request: optional(nullable(json())), ...rowPlaceFields });

/** One row a request, in order. Pure: nothing stored is looked at. */
export function parseRequests(requests: unknown): Parsed<ParsedRequest[]> {
	if (requests === undefined) return refuse([required]);
	if (!Array.isArray(requests)) {
		const message = `Expected a list of items but got type "${typeName(requests)}".`;
		return refuse([{ code: 'not_a_list', message }]);
	}
	const rows: ParsedRequest[] = [];
	for (const [index, item] of requests.entries()) {
		const parsed = declared.parse(item, 'create');
		if (parsed.kind === 'invalid') return refuse({ [index]: parsed.errors });
		const { request, refused, ...place } = parsed.value;
		rows.push(
			refused === undefined ? parseRequest(request, place) : { ...place, to: '', ...refusalOf(refused) },
		);
	}
	return { kind: 'valid', value: rows };
}

/** What is wrong with a request, as a rejected row: the first complaint stands for all. */
export function refusedRequest(
	to: string,
	errors: FieldErrors,
	place: { line?: number },
): Extract<RequestedRow, { kind: 'rejected' }> {
	const [first] = complaintsOf(errors);
	const error = first === undefined ? 'The request is refused.' : `${first.path}: ${first.message}`;
	return { ...place, kind: 'rejected', code: first?.code ?? 'invalid', error, to };
}

function parseRequest(request: unknown, place: { line?: number }): ParsedRequest {
	const parsed = sendFields.parse(request);
	if (parsed.kind === 'invalid') return refusedRequest(addressesOf(request), parsed.errors, place);
	const { value: send } = parsed;
	if (send.campaign_unique_id !== null) {
		const message = 'Requests of one job are one mailing: leave it out.';
		const errors = { campaign_unique_id: [{ code: 'invalid', message }] };
		return refusedRequest(addressesOf(request), errors, place);
	}
	const { to: _, ...rest } = send;
	return { kind: 'request', send, alike: canonicalJson(rest), ...place };
}

function addressesOf(request: unknown): string {
	const to = isRecord(request) ? request['to'] : undefined;
	const addresses = Array.isArray(to) ? to : [to];
	return addresses
		.filter((one) => typeof one === 'string')
		.join(', ')
		.slice(0, 320);
}

function refuse(errors: FieldErrors[string]): { kind: 'invalid'; errors: FieldErrors } {
	return { kind: 'invalid', errors: { requests: errors } };
}
