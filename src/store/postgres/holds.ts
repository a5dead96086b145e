/**
 * What a write holds until its transaction ends. Writes that hold nothing against each other run side by side, and what
 * they did is what some order of them would have done. Most hold the project alone; those that come often share it, and
 * hold less. Rows of messages are locked where they are read (`Dialect.lockRows`).
 *
 * Advisory locks: PostgreSQL, 13.3.5.
 */
import { createHash } from 'node:crypto';
import { emailKey } from '../../api/address.js';
import { isBounce } from '../../engine/rules/outcomes.js';
import type { Slices } from '../core/campaigns/rows.js';
import { isReading } from '../core/events.js';
import type { Queue } from '../queue.js';
import type { Writes } from '../store.js';

/** In the order in which they are taken, so that no two writes wait for each other. */
const levels = ['project', 'people', 'address', 'key', 'deliveries'] as const;

/** One lock of a transaction. */
export interface Hold {
	level: (typeof levels)[number];
	bucket: number;
	isAlone: boolean;
}

type Operations = Writes & Queue & Slices;

const buckets = 64;

function alone(level: Hold['level'], of = ''): Hold {
	return { level, bucket: bucketOf(of), isAlone: true };
}

function shared(level: Hold['level'], of = ''): Hold {
	return { level, bucket: bucketOf(of), isAlone: false };
}

function bucketOf(text: string): number {
	return text === '' ? 0 : createHash('sha256').update(text).digest().readUInt16BE() % buckets;
}

/** Everything: what has no entry below. */
export const projectAlone: readonly Hold[] = [alone('project')];
const shares = shared('project');

/** People do not change meanwhile, but for new ones. */
const keepsPeople = [shares, shared('people')];
const changesPeople = [shares, alone('people')];

const beside: {
	readonly [Name in keyof Operations]?: (command: Parameters<Operations[Name]>[0]) => readonly Hold[];
} = {
	createSubscriber: ({ input, if_exists }) =>
		if_exists === 'update' ? changesPeople : [...keepsPeople, alone('address', emailKey(input.email))],
	patchSubscriber: () => changesPeople,
	deleteSubscriber: () => changesPeople,
	putImportBatch: () => changesPeople,
	putCampaignBatch: () => changesPeople,
	addPeopleToCampaign: () => changesPeople,
	stageSlice: () => changesPeople,
	acceptSubmission: ({ recipients, key }) => [
		...keepsPeople,
		...recipients.map(({ to_key }) => shared('address', to_key)),
		...(key === null ? [] : [alone('key', JSON.stringify([key.scope, key.key]))]),
	],
	// Of several that lease at once each gets other messages.
	leaseSlice: ({ perSecond, alone }) =>
		perSecond === undefined && alone === undefined ? keepsPeople : projectAlone,
	renew: () => [shares],
	setCalling: () => [shares],
	beginComposing: () => [shares],
	endComposing: () => [shares],
	settle: ({ settlements }) =>
		settlements.some(({ outcome }) => isBounce(outcome)) ? projectAlone : [shares],
	recordEvents: ({ events }) => (events.every(isReading) ? [shares] : projectAlone),
	leaseDeliveries: () => [shares, alone('deliveries')],
	settleDeliveries: () => [shares, alone('deliveries')],
};

/** `command`: that of the operation. */
export function holdsOf(operation: string, command: unknown): readonly Hold[] {
	const holds: ((command: unknown) => readonly Hold[]) | undefined = Reflect.get(beside, operation);
	return holds?.(command) ?? projectAlone;
}

/** The calls that take them, each once. */
export function takeHolds(schema: string, holds: readonly Hold[]): readonly string[] {
	const each = new Map(
		holds
			.map((hold) => ({ ...hold, at: levels.indexOf(hold.level) }))
			.toSorted((one, other) => one.at - other.at || one.bucket - other.bucket)
			.map((hold) => [`${hold.level} ${hold.bucket}`, hold]),
	);
	return [...each].map(([name, { isAlone }]) => {
		const take = isAlone ? 'pg_advisory_xact_lock' : 'pg_advisory_xact_lock_shared';
		return `${take}(hashtextextended('mailctl ${schema} ${name}', 0))`;
	});
}
