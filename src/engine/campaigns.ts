import { basename, extname } from 'node:path';
import type { Call } from '../api/api.js';
import { createTurns } from '../api/backoff.js';
import {
	type AcceptCounts,
	type CampaignOpening,
	type CampaignSpec,
	type Campaigns,
	isOfCalls,
	maxBatchRows,
	type RequestBatch,
	type RequestsSpec,
	type ResultsRequest,
	repeatedCampaign,
} from '../api/campaigns.js';
import type { Ack } from '../api/capabilities.js';
import { dayOf, parseDateTime } from '../api/datetime.js';
import { ApiError, invalid, notFound } from '../api/errors.js';
import type { SendRequest } from '../api/inputs.js';
import { canonicalJson } from '../api/json.js';
import { campaignFields, normalizeTiming, requestsFields } from '../api/messages.js';
import type { Uuid } from '../api/records.js';
import { texts } from '../api/schema/texts.js';
import type { CampaignAck, OpenCampaign, RequestedRow } from '../store/campaigns.js';
import type { Command } from '../store/operations.js';
import { assertAudience, assertKept, settledTiming } from './audiences.js';
import { opaqueContent, refusalBeside, resolveContent, submissionOf } from './contents.js';
import { type CampaignContext, checked, found, readPage, refuse, seenBy } from './context.js';
import {
	campaignName,
	messageUuid,
	type ParsedRequest,
	parseRecipients,
	parseRequests,
	refusedRequest,
} from './rules/campaign-rows.js';
import { readSettings } from './settings.js';

export function createCampaigns(context: CampaignContext): Campaigns {
	const { store, clock } = context;
	return {
		open: (key, spec, call) => openCampaign(context, { key, spec, call }),
		check: async (key, spec, call) => {
			await openCampaign(context, { key, spec, call, isTrial: true });
		},
		addList: async (campaign, list_id, call) => {
			found(await store.reads.getList({ id: list_id }));
			const now = clock.now();
			const part = call?.forMs === undefined ? {} : { for_ms: call.forMs };
			const adding = { campaign, list_id, now, ...part, ...seenBy(call) };
			const ack = await store.writes.addListToCampaign(adding, call);
			if (ack === null) throw await unknownCampaign(context, campaign, call);
			return ack;
		},
		put: async (campaign, batch, call) => {
			const check = async () => checked(await parseRecipients(batch.recipients));
			return await putBatch(context, { campaign, first: batch.first, given: batch.recipients, check }, call);
		},
		putRequests: async (campaign, batch, call) => {
			const check = () => checkedRequests(context, campaign, batch);
			return await putBatch(context, { campaign, first: batch.first, given: batch.requests, check }, call);
		},
		complete: async (campaign, { position }, call) => {
			const outcome = await store.writes.completeCampaign({ campaign, position, ...seenBy(call) });
			if (outcome.kind === 'not_found') throw await unknownCampaign(context, campaign, call);
			if (outcome.kind !== 'complete') throw refusalOf(outcome);
		},
		release: async (campaign, { expect_count }, call) => {
			const now = clock.now();
			const outcome = await store.writes.releaseCampaign({ campaign, expect_count, now, ...seenBy(call) });
			switch (outcome.kind) {
				case 'released':
					return;
				case 'not_found':
					throw await unknownCampaign(context, campaign, call);
				case 'incomplete':
					throw new ApiError('conflict', 'The list was not read completely; nothing was released.');
				case 'canceled':
					throw new ApiError('conflict', 'This campaign was canceled.');
				case 'count_differs':
					throw new ApiError(
						'conflict',
						`This campaign has ${outcome.count} recipients, not ${expect_count}; nothing was released.`,
					);
			}
		},
		cancel: async (campaign, call) => {
			const forget = call?.forget ?? false;
			const canceled = { campaign, forget, now: clock.now(), ...seenBy(call) };
			const outcome = await store.writes.cancelCampaign(canceled);
			if (outcome.kind === 'not_found') throw notFound();
			if (outcome.kind === 'released')
				throw new ApiError('conflict', 'This campaign was released; nothing was canceled.');
		},
		status: async (id, call) =>
			found(await store.reads.campaignStatus({ id, now: clock.now(), ...seenBy(call) })),
		page: async (request, call) =>
			readPage(context, request, '/ext/mailings/', (at, { since, ...filter }) => {
				const since_at =
					since === undefined ? {} : { since_at: parseDateTime(since) ?? refuse('since', texts.datetime) };
				return store.reads.pageCampaigns({
					...{ ...at, ...filter, ...since_at, now: clock.now(), ...seenBy(call) },
				});
			}),
		results: async (id, request, call) => {
			const slice = { after: 0, only: null, ...request, limit: limitOf(request) };
			const part = found(await store.reads.sliceCampaignResults({ id, ...slice, ...seenBy(call) }));
			if (part.results.length === 0) await assertKept(store, id);
			return part;
		},
	};
}

interface Opening {
	key: string | null;
	spec: OpenCampaign['spec'];
	call: (Call & CampaignOpening) | undefined;
	isTrial?: boolean;
}

async function openCampaign(context: CampaignContext, { key, spec, call, isTrial = false }: Opening) {
	const { store, clock } = context;
	const opened = await ('requests' in spec ? openRequests(context, spec) : openContent(context, spec));
	const outcome = await store.writes.openCampaign({
		...opened,
		key: key ?? (await madeName(context, spec, opened)),
		is_numbered: key === null,
		spec,
		courier: context.courier,
		...(call?.unless !== undefined && { unless: call.unless }),
		is_trial: isTrial,
		...(call?.client !== undefined && { owner: call.client }),
		...seenBy(call),
		now: clock.now(),
	});
	if (outcome.kind === 'conflict')
		throw new ApiError('conflict', `The name "${key}" belongs to another campaign.`);
	if (outcome.kind === 'repeated') throw repeatedCampaign(outcome.key);
	if (outcome.kind === 'refused') throw invalid(outcome.errors);
	return outcome.session;
}

async function madeName(
	{ store, clock }: CampaignContext,
	{ source }: OpenCampaign['spec'],
	{ submission }: Opened,
): Promise<string> {
	const { timeZone } = await readSettings(store);
	const file = source?.['path'] ?? '';
	const about = submission === null ? basename(file, extname(file)) : submission.content.subject;
	return campaignName(about, dayOf(clock.now(), timeZone));
}

type Opened = Pick<OpenCampaign, 'id' | 'strict_vars' | 'submission' | 'audience' | 'timing'>;

async function openRequests({ store, newId }: CampaignContext, spec: RequestsSpec): Promise<Opened> {
	const { strict_vars, requests, ...given } = checked(requestsFields.parse(spec, 'create'));
	if (!requests) refuse('requests', 'Give true, or leave this field out.');
	const timing = await settledTiming(store, normalizeTiming(given));
	return { id: newId(), strict_vars, submission: null, timing };
}

async function openContent(context: CampaignContext, spec: CampaignSpec): Promise<Opened> {
	const { store, clock, newId } = context;
	const parsed = campaignFields.parse(spec);
	const isOurs = context.courier === 'smtp';
	if (parsed.kind === 'invalid') throw isOurs ? await refusalBeside(context, parsed) : invalid(parsed.errors);
	const campaign = parsed.value;
	if (!isOurs && campaign.attachments !== undefined) throw invalid(unknownFiles);
	const resolved = isOurs
		? await resolveContent(context, campaign)
		: { ...opaqueContent(campaign), request: callOf(spec) };
	const { strict_vars, audience } = campaign;
	if (isOurs) await assertAudience(store, audience);
	const list_id = isOurs ? campaign.list_id : null;
	return {
		id: campaign.campaign_unique_id ?? newId(),
		strict_vars,
		submission: submissionOf({ ...campaign, list_id }, resolved, { id: newId(), now: clock.now() }),
		...(isOurs && audience.lists.length > 0 && { audience }),
		timing: await settledTiming(store, campaign.timing),
	};
}

const unknownFiles = {
	attachments: [{ code: 'invalid', message: 'This service does not support this field.' }],
};

function callOf(spec: CampaignSpec): Omit<SendRequest, 'to'> {
	const { list_id: _list, strict_vars: _strict, campaign_unique_id: _campaign, ...rest } = spec;
	const { source: _source, context: _context, ...call } = rest;
	return call;
}

const mostResults = 1_000;

function limitOf({ limit }: ResultsRequest): number {
	if (limit === undefined || !Number.isSafeInteger(limit) || limit < 1) return mostResults;
	return Math.min(limit, mostResults);
}

interface GivenBatch extends Pick<Command<'putCampaignBatch'>, 'campaign' | 'first'> {
	given: unknown;
	check(): Promise<Command<'putCampaignBatch'>['rows']>;
}

async function putBatch(
	context: CampaignContext,
	{ campaign, first, given, check }: GivenBatch,
	call: Call | undefined,
): Promise<Ack<AcceptCounts>> {
	assertBatch(first, given);
	const put = async (rows: Command<'putCampaignBatch'>['rows']) => {
		const batch = { campaign, first, rows, now: context.clock.now(), ...seenBy(call) };
		const outcome = await context.store.writes.putCampaignBatch(batch);
		if (outcome.kind === 'acknowledged') return outcome.ack;
		if (outcome.kind === 'not_found') throw await unknownCampaign(context, campaign, call);
		throw refusalOf(outcome);
	};
	// Checking rows is slow. So first ask with no rows whether the campaign accepts this batch or already has it.
	const ack = await put([]);
	return ack.position > first ? ack : await put(await check());
}

async function unknownCampaign(
	{ store, clock }: CampaignContext,
	id: Uuid,
	call: Call | undefined,
): Promise<ApiError> {
	const known = await store.reads.campaignStatus({ id, now: clock.now(), ...seenBy(call) });
	if (known === null || !isOfCalls(known)) return notFound();
	return new ApiError(
		'conflict',
		'A send call created and released this campaign: it can be canceled, but takes no more recipients.',
	);
}

function refusalOf(outcome: Exclude<CampaignAck, { kind: 'acknowledged' | 'not_found' }>): ApiError {
	switch (outcome.kind) {
		case 'gap':
			return new ApiError('conflict', `The next row of this campaign is ${outcome.position}.`);
		case 'closed':
			return new ApiError('conflict', `This campaign is ${outcome.state}: it takes no more recipients.`);
		case 'other_rows':
			return new ApiError(
				'conflict',
				'A campaign takes either recipients or send requests, depending on how it was opened.',
			);
	}
}

const maxBatchBytes = 4 * 1024 * 1024;

const maxBatchRecipients = 50_000;

function assertBatch(first: number, rows: unknown): void {
	if (!Number.isSafeInteger(first) || first < 0) {
		refuse('first', texts.integer);
	}
	if (Array.isArray(rows) && rows.length > maxBatchRows)
		throw new ApiError('too_large', `A batch holds at most ${maxBatchRows} rows.`);
	const size = Buffer.byteLength(JSON.stringify([rows]));
	if (size > maxBatchBytes) throw new ApiError('too_large', 'A batch holds at most 4 MiB.');
}

async function checkedRequests(
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
	const { to, ...said } = send;
	const recipients = to.map(({ address, key }) => ({ to: address, to_key: key }));
	try {
		const resolved = await resolveContent(context, send);
		// The id is a hash of the request, so a row repeated after a crash is the same submission.
		const id = messageUuid(campaign, canonicalJson(said));
		const submission = submissionOf(send, resolved, { id, now: context.clock.now() });
		return { kind, alike: messageUuid(campaign, alike), submission, recipients, ...place };
	} catch (error) {
		if (!(error instanceof ApiError) || error.fields === null) throw error;
		return refusedRequest(recipients.map((one) => one.to).join(', '), error.fields, place);
	}
}

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
