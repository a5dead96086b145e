/** Concurrent writes of two processes have the result of one of their possible orders: see `store/operations.ts`. */
import Database from 'better-sqlite3';
import { afterAll, expect, it } from 'vitest';
import { carryOut } from '../../src/store/operations.js';
import { openPostgresStore } from '../../src/store/postgres/store.js';
import { inSlices, leaseInSlices } from '../../src/store/slices.js';
import { createCore } from '../../src/store/sqlite/core.js';
import { createSql } from '../../src/store/sqlite/sql.js';
import { fixedClock, noon } from '../contract/store/fixture.js';
import { migrated } from '../support/memory-store.js';
import { describePostgres } from '../support/postgres.js';
import {
	alone,
	type Call,
	type Project,
	seenBy,
	setUp,
	sharing,
	type Target,
	targetOf,
	textOf,
} from './race-operations.js';

const racers = 4;

const names = Object.keys(sharing);
const holders = [
	...['createSubscriber', 'patchSubscriber of its meta', 'acceptSubmission under a key', 'lease'],
	...['settle, sent', 'recordEvents, opened', 'leaseDeliveries'],
];
const pairs = [
	...names.flatMap((one, at) => names.slice(at).map((other) => [one, other] as const)),
	...Object.keys(alone).flatMap((one) => holders.map((other) => [one, other] as const)),
];

describePostgres('concurrent writes', (server) => {
	const orders = openOrders();
	afterAll(orders.close);

	async function race(one: string, other: string) {
		const url = new URL(await server.createProject());
		url.searchParams.set('pool', '4');
		const open = () => openPostgresStore({ url: url.href, clock: fixedClock, mode: 'create' });
		const stores = [await open(), await open()] as const;
		try {
			const each = [targetOf(stores[0]), targetOf(stores[1])] as const;
			const project = await setUp(each[0]);
			const answers = await Promise.all(
				callsOf(project, one, other)
					.flat()
					.map(async (call, at) => ({
						kind: call.name,
						answer: await answerOf(at % 2 === 0 ? each[0] : each[1], call),
					})),
			);
			const outcome = outcomeOf(answers, await seenBy(each[0]));
			return { outcome, ...(await orders.find(one, other, outcome)) };
		} finally {
			await Promise.all(stores.map((store) => store.close()));
		}
	}

	it.each(pairs)('%s and %s at once have the same outcome as one after the other', async (one, other) => {
		const { outcome, found, another } = await race(one, other);
		expect(found ? outcome : another).toBe(outcome);
	});
});

function callsOf(project: Project, one: string, other: string): readonly [Call[], Call[]] {
	const of = (name: string) =>
		Array.from({ length: racers }, (_, at) => (sharing[name] ?? alone[name])?.(project, at) ?? []).flat();
	return [of(one), one === other ? [] : of(other)];
}

/** The steps of sliced operations before their last step; other writes can come between them. */
const ahead: Readonly<Record<string, (id: number) => { name: string; command: unknown }>> = {
	deleteList: (id) => ({ name: 'dropSubscribers', command: { list_id: id, limit: 1_000, isFirst: true } }),
	deleteField: (id) => ({ name: 'dropFieldUses', command: { id, after: 0, limit: 1_000 } }),
};

function toldOf({ name }: Call, answer: unknown): Answered[] {
	return name.startsWith('drop') ? [] : [{ kind: name, answer }];
}

/** Puts the early steps before all calls. Neither they nor a repeated step changes the outcome of another call. */
function inSteps(calls: readonly Call[]): Call[] {
	const steps = calls.flatMap(({ name, command }) => ahead[name]?.((command as { id: number }).id) ?? []);
	return [...(steps as Call[]), ...calls];
}

async function answerOf(target: Target, { name, command }: Call): Promise<unknown> {
	try {
		return await target(name, command);
	} catch (error) {
		return String(error);
	}
}

interface Answered {
	kind: string;
	answer: unknown;
}

/** Joins the results of both leases, because a lease skips locked messages, so either one may get a message. */
function outcomeOf(answers: readonly Answered[], seen: string): string {
	const leased = answers.filter(({ kind }) => kind === 'lease').flatMap(({ answer }) => answer);
	return textOf([...answers.filter(({ kind }) => kind !== 'lease'), leased, seen]);
}

function openOrders() {
	const db = migrated(new Database(':memory:'), noon);
	const core = createCore(createSql(db));
	const step = async (name: string, command: unknown) => carryOut(core, name, command) as never;
	const sliced: Readonly<Record<string, (command: never) => Promise<unknown>>> = {
		...inSlices({ step, isTrial: false }),
		lease: (command: never) => leaseInSlices(async () => core.leaseSlice(command)),
	};
	const target: Target = async (name, command) =>
		(await (name in ahead
			? step(name, command)
			: (sliced[name]?.(command as never) ?? step(name, command)))) as never;
	const ready = setUp(target);
	return {
		find: async (one: string, other: string, outcome: string) => {
			const [ofOne = [], ofOther = []] = callsOf(await ready, one, other).map(inSteps);
			let another: string | null = null;
			const go = async (at: number, otherAt: number, answers: readonly Answered[]): Promise<boolean> => {
				if (at === ofOne.length && otherAt === ofOther.length) {
					const end = outcomeOf(answers, await seenBy(target));
					another ??= end;
					return end === outcome;
				}
				const next = [
					{ call: ofOne[at], to: [at + 1, otherAt] as const },
					{ call: ofOther[otherAt], to: [at, otherAt + 1] as const },
				];
				for (const { call, to } of next) {
					if (call === undefined) continue;
					db.exec('SAVEPOINT one');
					try {
						const told = toldOf(call, await answerOf(target, call));
						if (await go(...to, [...answers, ...told])) return true;
					} finally {
						db.exec('ROLLBACK TO one; RELEASE one');
					}
				}
				return false;
			};
			return { found: await go(0, 0, []), another };
		},
		close: () => void db.close(),
	};
}
