/** An in-memory queue with the states, leases and fences of the real one, for tests of the worker. */

import type { Micros } from '../../src/api/datetime.js';
import type { Content, Envelope } from '../../src/api/messages.js';
import type { MessageState } from '../../src/api/records.js';
import { compileContent } from '../../src/content/compile.js';
import type { RunOptions } from '../../src/delivery/run.js';
import type { DeliveryOutcome } from '../../src/engine/rules/outcomes.js';
import type { StoredSubmission } from '../../src/store/campaigns.js';
import type { Queue, Reads } from '../../src/store/operations.js';
import type { Leased, QueuePause } from '../../src/store/queue.js';

interface Row {
	message: Leased;
	state: MessageState;
	due: Micros;
	until: Micros;
	outcomes: DeliveryOutcome[];
}

export interface MemoryQueue {
	readonly queue: Queue;
	readonly reads: RunOptions['reads'] & Pick<Reads, 'getSubmission' | 'getAttachment'>;
	readonly pauses: ReadonlyMap<QueuePause['kind'], QueuePause>;
	readonly rows: readonly Row[];
	states(): Partial<Record<MessageState, number>>;
	row(index: number): Row;
}

const testContent: Content = { subject: 'Hi', text: 'Hello', html: null, disable_inline: true };

export function createMemoryQueue(c: {
	to: readonly string[];
	type?: 'TRANSACTIONAL' | 'BULK';
	envelope?: Partial<Envelope>;
	now?: Micros;
}): MemoryQueue {
	const submission: StoredSubmission = {
		id: '00000000-0000-4000-8000-00000000aaaa',
		type: c.type ?? 'TRANSACTIONAL',
		envelope: {
			from: 'Sender <news@example.com>',
			reply_to: [],
			cc: [],
			bcc: [],
			headers: {},
			...c.envelope,
		},
		tag: null,
		campaign: null,
		content: testContent,
		content_sha256: 'x',
	};
	const rows: Row[] = c.to.map((to, index) => ({
		message: {
			message: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
			fence: 0,
			submission: submission.id,
			to,
			list_id: null,
			variables: {},
			attempts: 0,
			created_at: c.now ?? 0,
		},
		state: 'queued',
		due: 0,
		until: 0,
		outcomes: [],
	}));
	const byId = new Map(rows.map((row) => [row.message.message, row]));
	const states = () => {
		const counts: Partial<Record<MessageState, number>> = {};
		for (const { state } of rows) counts[state] = (counts[state] ?? 0) + 1;
		return counts;
	};
	const isDue = (row: Row, now: Micros) =>
		row.state === 'leased'
			? row.until <= now
			: (row.state === 'queued' || row.state === 'deferred') && row.due <= now;
	const pauses = new Map<QueuePause['kind'], QueuePause>();
	const queue: Queue = {
		pause: async ({ kind, reason, retry_at, now }) => {
			const { since, faults } = pauses.get(kind) ?? { since: now, faults: 0 };
			const pause = { kind, reason, retry_at, since, faults: kind === 'manual' ? 0 : faults + 1 };
			pauses.set(kind, pause);
			return pause;
		},
		resume: async ({ kinds }) => kinds.map((kind) => pauses.delete(kind)).includes(true),
		lease: async ({ now, until, max }) => {
			if (pauses.has('manual')) return [];
			const due = rows.filter((row) => isDue(row, now)).slice(0, max);
			for (const row of due) {
				row.message = { ...row.message, fence: row.message.fence + 1 };
				Object.assign(row, { state: 'leased', until });
			}
			return due.map((row) => row.message);
		},
		renew: async ({ fences, until }) => {
			for (const { message, fence } of fences) {
				const row = byId.get(message);
				if (row?.message.fence === fence && row.state === 'leased') row.until = until;
			}
		},
		setCalling: async () => undefined,
		beginComposing: async () => undefined,
		endComposing: async () => undefined,
		settle: async ({ settlements }) =>
			settlements.map(({ message, fence, outcome }) => {
				const row = byId.get(message);
				if (row === undefined || row.message.fence !== fence || row.state !== 'leased') return 'lost_lease';
				row.outcomes.push(outcome);
				row.state = stateAfter(outcome);
				if (outcome.kind === 'deferred') row.due = outcome.due_at;
				if (outcome.kind === 'released') row.due = outcome.due_at ?? row.due;
				if (outcome.kind !== 'released') row.message = { ...row.message, attempts: row.message.attempts + 1 };
				return 'recorded';
			}),
	};
	return {
		queue,
		reads: {
			getAttachment: async () => null,
			getSubmission: async ({ id }) => (id === submission.id ? submission : null),
			countMessages: async () => states(),
			revokedLeases: async () => [],
			queuePauses: async () => [...pauses.values()],
			nextTurn: async () => null,
			nextDue: async () => {
				const waiting = rows.filter(({ state }) => state === 'queued' || state === 'deferred');
				return waiting.length === 0 ? null : Math.min(...waiting.map(({ due }) => due));
			},
		},
		pauses,
		rows,
		states,
		row: (index) => {
			const row = rows[index];
			if (row === undefined) throw new Error(`no row ${index}`);
			return row;
		},
	};
}

const plain = compileContent(
	{ subject: 'Hello', text: 'A text\nview:#view_url|-#\n', html: null, disable_inline: false },
	() => Promise.reject(new Error('no HTML')),
);
export const plainContents = { get: () => plain };

function stateAfter({ kind }: DeliveryOutcome): MessageState {
	if (kind === 'released') return 'queued';
	return kind === 'suppressed' ? 'canceled' : kind;
}
