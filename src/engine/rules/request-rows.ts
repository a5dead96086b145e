/** A batch of send requests: a bad shape refuses the whole batch, an error of a send call only its row. */

import { requestIdentity } from '../../api/campaign-identity.js';
import { type FieldErrors, listFieldErrors } from '../../api/errors.js';
import type { SendRequest } from '../../api/inputs.js';
import { isRecord } from '../../api/json.js';
import { type CheckedSend, sendFields } from '../../api/messages.js';
import { json, nullable, optional } from '../../api/schema/fields.js';
import { typeName } from '../../api/schema/python.js';
import { fieldSet, type Parsed, required } from '../../api/schema.js';
import { createTurns } from '../../api/sleep.js';
import { hasDefault, variablesIn } from '../../api/variables.js';
import { type RefusedRow, refusalOf, rowPlaceFields } from './row-place.js';

/** `smtp`: the mail server of the database. `api`: the send API of a service. */
export type Courier = 'smtp' | 'api';

/**
 * A checked request whose template is not read yet; `alike` is equal for requests of the same mail (`requestIdentity`).
 */
export type ParsedRequest =
	| {
			kind: 'request';
			send: CheckedSend;
			alike: string;
			/** As given, without its recipients. */
			given: Omit<SendRequest, 'to'>;
			line?: number;
	  }
	| RefusedRow;

const declared = fieldSet({ request: optional(nullable(json())), ...rowPlaceFields });

/** One result for each request, in order. Nothing stored is read. */
export async function parseRequests(requests: unknown, courier: Courier): Promise<Parsed<ParsedRequest[]>> {
	if (requests === undefined) return refuse([required]);
	if (!Array.isArray(requests)) {
		const message = `Expected a list of items but got type "${typeName(requests)}".`;
		return refuse([{ code: 'not_a_list', message }]);
	}
	const rows: ParsedRequest[] = [];
	const turn = createTurns();
	for (const [index, item] of requests.entries()) {
		await turn();
		const parsed = parseRequest(item, courier);
		if (parsed.kind === 'invalid') return refuse({ [index]: parsed.errors });
		rows.push(parsed.value);
	}
	return { kind: 'valid', value: rows };
}

/** One request. */
export function parseRequest(item: unknown, courier: Courier): Parsed<ParsedRequest> {
	const parsed = declared.parse(item, 'create');
	if (parsed.kind === 'invalid') return parsed;
	const { request, refused, ...place } = parsed.value;
	if (refused !== undefined) return { kind: 'valid', value: { ...place, to: '', ...refusalOf(refused) } };
	return { kind: 'valid', value: checkedRequest(request, place, courier) };
}

/** A refused request as a rejected row: the first error stands for all. */
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
		const message = 'Requests of one batch are one campaign: leave it out.';
		const errors = { campaign_unique_id: [{ code: 'invalid', message }] };
		return refusedRequest(addressesOf(request), errors, place);
	}
	// Checked above: a send call accepts it.
	const { to: _, ...given } = request as SendRequest;
	return { kind: 'request', send, alike: requestIdentity(send), given, ...place };
}

/** Errors for keys and values that only our own service accepts. */
function oursIn(send: CheckedSend): FieldErrors | null {
	const ours = (['list_id', 'campaign_unique_id', 'attachments'] as const).find(
		(name) => (send[name] ?? null) !== null,
	);
	if (ours !== undefined)
		return { [ours]: [{ code: 'invalid', message: 'this service does not know what that is.' }] };
	const texts = (['subject', 'text_body', 'html_body'] as const).find((name) =>
		variablesIn(send[name] ?? '').some(hasDefault),
	);
	if (texts === undefined) return null;
	return { [texts]: [{ code: 'invalid', message: 'this service knows no defaults of variables.' }] };
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
