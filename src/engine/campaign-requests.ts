/** Batches of a campaign: their maximum size, and send requests as rows that the store can stage. */

import { maxBatchRows, type RequestBatch } from '../api/campaigns.js';
import { ApiError, invalid } from '../api/errors.js';
import { canonicalJson } from '../api/json.js';
import type { Uuid } from '../api/records.js';
import { texts } from '../api/schema/texts.js';
import { createTurns } from '../api/sleep.js';
import type { RequestedRow } from '../store/campaigns.js';
import { opaqueContent, resolveContent } from './contents.js';
import { type CampaignContext, checked } from './context.js';
import { messageUuid } from './rules/ids.js';
import { type ParsedRequest, parseRequests, refusedRequest } from './rules/request-rows.js';

/** A batch is one transaction and one request body; octets of its JSON. */
const maxBatchBytes = 4 * 1024 * 1024;

const maxBatchRecipients = 50_000;

/** Throws `invalid` and `too_large`. */
export function assertBatch(first: number, rows: unknown): void {
	if (!Number.isSafeInteger(first) || first < 0) {
		throw invalid({ first: [{ code: 'invalid', message: texts.integer }] });
	}
	if (Array.isArray(rows) && rows.length > maxBatchRows)
		throw new ApiError('too_large', `A batch holds at most ${maxBatchRows} rows.`);
	const size = Buffer.byteLength(JSON.stringify([rows]));
	if (size > maxBatchBytes) throw new ApiError('too_large', 'A batch holds at most 4 MiB.');
}

/** Reads templates here; the operation that stages looks up senders and lists once more. */
export async function checkedRequests(
	context: CampaignContext,
	campaign: Uuid,
	{ first, requests }: RequestBatch,
): Promise<RequestedRow[]> {
	const parsed = checked(await parseRequests(requests, context.courier));
	const recipients = parsed.reduce((sum, row) => sum + (row.kind === 'request' ? row.send.to.length : 1), 0);
	if (recipients > maxBatchRecipients)
		throw new ApiError('too_large', `A batch holds at most ${maxBatchRecipients} recipients.`);
	const rows: RequestedRow[] = [];
	const turn = createTurns();
	for (const [index, row] of parsed.entries()) {
		await turn();
		if (row.kind === 'rejected') rows.push(row);
		else if (context.courier === 'api') rows.push(asGiven(context, row, { campaign, number: first + index }));
		else rows.push(await resolve(context, campaign, row));
	}
	return rows;
}

async function resolve(
	context: CampaignContext,
	campaign: Uuid,
	{ send, alike, kind, given: _, ...place }: Extract<ParsedRequest, { kind: 'request' }>,
): Promise<RequestedRow> {
	const { type, envelope, from_key, tag, list_id, to } = send;
	const recipients = to.map(({ address, key }) => ({ to: address, to_key: key }));
	try {
		const resolved = await resolveContent(context, send);
		const tracking = send.disable_tracking ? 'off' : 'on';
		const shared = { type, envelope, from_key, tag, tracking, list_id, context: send.context } as const;
		// Identified by all its content: put again after a crash, or in another batch, it is the same submission.
		const { to: _to, ...said } = send;
		const id = messageUuid(campaign, canonicalJson(said));
		const submission = { id, ...shared, ...resolved, now: context.clock.now() };
		return { kind, alike: messageUuid(campaign, alike), submission, recipients, ...place };
	} catch (error) {
		if (!(error instanceof ApiError) || error.fields === null) throw error;
		return refusedRequest(recipients.map((one) => one.to).join(', '), error.fields, place);
	}
}

/** For a service that makes the messages: the call as it was given, without look-ups here. */
function asGiven(
	{ clock }: CampaignContext,
	{ send, alike, kind, given, ...place }: Extract<ParsedRequest, { kind: 'request' }>,
	{ campaign, number }: { campaign: Uuid; number: number },
): RequestedRow {
	const { type, envelope, from_key, tag, to, context } = send;
	const submission = {
		id: messageUuid(campaign, `${number}\n${alike}`),
		...{ type, envelope, from_key, tag, context, list_id: null },
		...opaqueContent(send),
		request: given,
		now: clock.now(),
	};
	const recipients = to.map(({ address, key }) => ({ to: address, to_key: key }));
	return { kind, alike: messageUuid(campaign, alike), submission, recipients, ...place };
}
