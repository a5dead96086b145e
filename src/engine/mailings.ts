/** Mailings: recipients are staged, checked, and released in one stroke. */
import type { AcceptCounts, Ack, MailingSpec, Mailings, RecipientBatch } from '../api/capabilities.js';
import { ApiError, invalid, notFound } from '../api/errors.js';
import type { RequestsSpec, ResultsRequest } from '../api/mailings.js';
import { mailingFields, requestsFields } from '../api/messages.js';
import type { MailingAck, OpenMailing } from '../store/mailings.js';
import { resolveContent } from './contents.js';
import { checked, deleted, type EngineContext, found } from './context.js';
import { assertBatch, checkedRequests } from './mailing-requests.js';
import { readPage } from './pages.js';
import { parseRecipients } from './rules/recipient-rows.js';

/** Mailings of the database. */
export function createMailings(context: EngineContext): Mailings {
	const { store, clock } = context;
	return {
		open: (key, spec) => openMailing(context, key, spec),
		addList: async (mailing, list_id) => {
			found(await store.reads.getList({ id: list_id }));
			return found(await store.writes.addListToMailing({ mailing, list_id, now: clock.now() }));
		},
		put: async (mailing, batch) => {
			const { first, rows } = checkedBatch(batch);
			return acknowledged(await store.writes.putMailingBatch({ mailing, first, rows, now: clock.now() }));
		},
		putRequests: async (mailing, batch) => {
			const { first, rows } = await checkedRequests(context, mailing, batch);
			return acknowledged(await store.writes.putMailingBatch({ mailing, first, rows, now: clock.now() }));
		},
		complete: async (mailing, { position }) => {
			const outcome = await store.writes.completeMailing({ mailing, position });
			if (outcome.kind !== 'complete') throw refusalOf(outcome);
		},
		release: async (mailing, { expect_count }) => {
			const outcome = await store.writes.releaseMailing({ mailing, expect_count, now: clock.now() });
			switch (outcome.kind) {
				case 'released':
					return;
				case 'not_found':
					throw notFound();
				case 'canceled':
					throw new ApiError('conflict', 'This mailing was canceled.');
				case 'count_differs':
					throw new ApiError(
						'conflict',
						`This mailing has ${outcome.count} recipients, not ${expect_count}; nothing was released.`,
					);
			}
		},
		cancel: async (mailing) => deleted(await store.writes.cancelMailing({ mailing, now: clock.now() })),
		status: async (id) => found(await store.reads.mailingStatus({ id })),
		page: ({ key, ...request }) => {
			const filter = key === undefined ? {} : { key };
			const place = { path: '/ext/mailings/', filters: filter };
			return readPage(context, request, place, (page) => store.reads.pageMailings({ ...page, ...filter }));
		},
		results: async (id, request) => {
			const slice = { after: 0, only: null, ...request, limit: limitOf(request) };
			return found(await store.reads.sliceMailingResults({ id, ...slice }));
		},
	};
}

async function openMailing(context: EngineContext, key: string, spec: MailingSpec | RequestsSpec) {
	const { store, clock } = context;
	const opened = 'requests' in spec ? openRequests(context, spec) : await openContent(context, spec);
	const outcome = await store.writes.openMailing({ ...opened, key, spec, now: clock.now() });
	if (outcome.kind === 'conflict')
		throw new ApiError('conflict', `The job "${key}" stands for another mailing.`);
	if (outcome.kind === 'refused') throw invalid(outcome.errors);
	return outcome.session;
}

type Opened = Pick<OpenMailing, 'id' | 'strict_vars' | 'submission'>;

/** Each of its rows brings its own content. */
function openRequests({ newId }: EngineContext, spec: RequestsSpec): Opened {
	const { strict_vars, requests } = checked(requestsFields.parse(spec, 'create'));
	if (!requests) throw invalid({ requests: [{ code: 'invalid', message: 'Give true, or leave it out.' }] });
	return { id: newId(), strict_vars, submission: null };
}

async function openContent(context: EngineContext, spec: MailingSpec): Promise<Opened> {
	const { clock, newId } = context;
	const mailing = checked(mailingFields.parse(spec));
	const resolved = await resolveContent(context, mailing);
	const { type, envelope, from_key, tag, list_id, strict_vars } = mailing;
	const shared = { type, envelope, from_key, tag, list_id, context: mailing.context };
	return {
		id: mailing.campaign_unique_id ?? newId(),
		strict_vars,
		submission: { id: newId(), ...shared, ...resolved, now: clock.now() },
	};
}

const mostResults = 1_000;

function limitOf({ limit }: ResultsRequest): number {
	if (limit === undefined || !Number.isSafeInteger(limit) || limit < 1) return mostResults;
	return Math.min(limit, mostResults);
}

function checkedBatch({ first, recipients }: RecipientBatch) {
	assertBatch(first, { recipients });
	return { first, rows: checked(parseRecipients(recipients)) };
}

function acknowledged(outcome: MailingAck): Ack<AcceptCounts> {
	if (outcome.kind === 'acknowledged') return outcome.ack;
	throw refusalOf(outcome);
}

function refusalOf(outcome: Exclude<MailingAck, { kind: 'acknowledged' }>): ApiError {
	switch (outcome.kind) {
		case 'gap':
			return new ApiError('conflict', `The next row of this mailing is ${outcome.position}.`);
		case 'not_found':
			return notFound();
		case 'closed':
			return new ApiError('conflict', `This mailing is ${outcome.state}: it takes nobody any more.`);
		case 'other_rows':
			return new ApiError(
				'conflict',
				'A mailing takes either recipients or send requests, as it was opened.',
			);
	}
}
