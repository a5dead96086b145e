/** Mailings: recipients are staged, checked, and released in one stroke. */
import type { AcceptCounts, Ack, MailingSpec, Mailings, RecipientBatch } from '../api/capabilities.js';
import { ApiError, invalid, notFound } from '../api/errors.js';
import { mailingFields } from '../api/messages.js';
import type { MailingAck } from '../store/store.js';
import { resolveContent } from './contents.js';
import { checked, deleted, type EngineContext, found } from './context.js';
import { parseRecipients } from './rules/recipient-rows.js';

/** A batch is one transaction and one request body; octets of its JSON. */
const maxBatchBytes = 4 * 1024 * 1024;

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
	};
}

async function openMailing(context: EngineContext, key: string, spec: MailingSpec) {
	const { store, clock, newId } = context;
	const mailing = checked(mailingFields.parse(spec));
	const resolved = await resolveContent(context, mailing);
	const now = clock.now();
	const { type, envelope, from_key, tag, list_id } = mailing;
	const outcome = await store.writes.openMailing({
		id: mailing.campaign_unique_id ?? newId(),
		key,
		spec,
		strict_vars: mailing.strict_vars,
		submission: {
			id: newId(),
			type,
			envelope,
			from_key,
			tag,
			list_id,
			context: mailing.context,
			...resolved,
			now,
		},
		now,
	});
	if (outcome.kind === 'conflict')
		throw new ApiError('conflict', `The job "${key}" stands for another mailing.`);
	if (outcome.kind === 'refused') throw invalid(outcome.errors);
	return outcome.session;
}

function checkedBatch({ first, recipients }: RecipientBatch) {
	if (!Number.isSafeInteger(first) || first < 0) {
		throw invalid({ first: [{ code: 'invalid', message: 'A valid integer is required.' }] });
	}
	const size = Buffer.byteLength(JSON.stringify({ recipients }));
	if (size > maxBatchBytes) throw new ApiError('too_large', 'A batch holds at most 4 MiB.');
	return { first, rows: checked(parseRecipients(recipients)) };
}

function acknowledged(outcome: MailingAck): Ack<AcceptCounts> {
	switch (outcome.kind) {
		case 'acknowledged':
			return outcome.ack;
		case 'gap':
			throw new ApiError('conflict', `The next row of this mailing is ${outcome.position}.`);
		case 'not_found':
			throw notFound();
		case 'closed':
			throw new ApiError('conflict', `This mailing is ${outcome.state}: it takes nobody any more.`);
	}
}
