/** Batches of a mailing: how large they may be, and send requests as rows the store can stage. */

import { ApiError, invalid } from '../api/errors.js';
import type { RequestBatch } from '../api/mailings.js';
import type { Uuid } from '../api/records.js';
import type { RequestedRow } from '../store/mailings.js';
import { resolveContent } from './contents.js';
import { checked, type EngineContext } from './context.js';
import { messageUuid } from './rules/ids.js';
import { type ParsedRequest, parseRequests, refusedRequest } from './rules/request-rows.js';

/** A batch is one transaction and one request body; octets of its JSON. */
const maxBatchBytes = 4 * 1024 * 1024;

/** Throws `invalid` and `too_large`. */
export function assertBatch(first: number, rows: object): void {
	if (!Number.isSafeInteger(first) || first < 0) {
		throw invalid({ first: [{ code: 'invalid', message: 'A valid integer is required.' }] });
	}
	const size = Buffer.byteLength(JSON.stringify(rows));
	if (size > maxBatchBytes) throw new ApiError('too_large', 'A batch holds at most 4 MiB.');
}

/** Templates are read here; senders and lists are compared once more inside the operation that stages. */
export async function checkedRequests(
	context: EngineContext,
	mailing: Uuid,
	{ first, requests }: RequestBatch,
): Promise<{ first: number; rows: RequestedRow[] }> {
	assertBatch(first, { requests });
	const parsed = checked(parseRequests(requests));
	const rows: RequestedRow[] = [];
	for (const row of parsed) rows.push(row.kind === 'rejected' ? row : await resolve(context, mailing, row));
	return { first, rows };
}

async function resolve(
	context: EngineContext,
	mailing: Uuid,
	{ send, alike, kind, ...place }: Extract<ParsedRequest, { kind: 'request' }>,
): Promise<RequestedRow> {
	const { type, envelope, from_key, tag, list_id, to } = send;
	const recipients = to.map(({ address, key }) => ({ to: address, to_key: key }));
	try {
		const resolved = await resolveContent(context, send);
		const shared = { type, envelope, from_key, tag, list_id, context: send.context };
		// Named by what it says: put again after a crash, and in another batch, it is the same submission.
		const submission = { id: messageUuid(mailing, alike), ...shared, ...resolved, now: context.clock.now() };
		return { kind, submission, recipients, ...place };
	} catch (error) {
		if (!(error instanceof ApiError) || error.fields === null) throw error;
		return refusedRequest(recipients.map((one) => one.to).join(', '), error.fields, place);
	}
}
