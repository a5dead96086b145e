import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dayOf, type Micros } from '../../../src/api/datetime.js';
import { openStore } from '../../../src/store/open.js';
import type { TrackedEvent } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	eventOf,
	fixedClock,
	hour,
	send,
	unknown550,
	verify,
} from '../../contract/store/fixture.js';

/** Starts 29 hours before Europe's clocks go forward in 2026 (29 March, 01:00 UTC). */
const start: Micros = Date.UTC(2026, 2, 27, 20) * 1000;
const zones = [
	'UTC',
	'Europe/Oslo',
	'America/New_York',
	'Australia/Lord_Howe',
	'Asia/Kathmandu',
	'Pacific/Apia',
];
const types = ['OPENED', 'REDIRECTED', 'UNSUBSCRIBED', 'SOFTBOUNCED', 'HARDBOUNCED'] as const;
const audienceTypes: readonly string[] = ['OPENED', 'REDIRECTED', 'UNSUBSCRIBED'];

const at = fc
	.integer({ min: 0, max: 110 * 4 })
	.chain((quarter) => fc.constantFrom(-1, 0, 1).map((micro) => start + (quarter * hour) / 4 + micro));
const action = fc.oneof(
	{
		weight: 8,
		arbitrary: fc.record({
			kind: fc.constant('event' as const),
			message: fc.nat({ max: 3 }),
			type: fc.constantFrom(...types),
			link: fc.constantFrom(null, 0, 1),
			machine: fc.boolean(),
			at,
		}),
	},
	{
		weight: 2,
		arbitrary: fc.record({
			kind: fc.constant('send' as const),
			campaign: fc.constantFrom(null, 'c', 'd'),
			outcome: fc.constantFrom<keyof typeof outcomes>('sent', 'sent', 'failed', 'bounced'),
			early: fc.option(fc.constantFrom('SOFTBOUNCED', 'HARDBOUNCED', 'OPENED'), { freq: 3 }),
			at,
		}),
	},
	{
		weight: 1,
		arbitrary: fc.record({ kind: fc.constant('zone' as const), zone: fc.constantFrom(...zones) }),
	},
);

const outcomes = {
	sent: { type: 'SENT', outcome: { kind: 'sent', reply: accepted250 } },
	failed: { type: 'SOFTBOUNCED', outcome: { kind: 'failed', reply: busy451 } },
	bounced: { type: 'HARDBOUNCED', outcome: { kind: 'bounced', reply: unknown550, suppress: false } },
} as const;
const firstStep = { kind: 'send', campaign: 'c', outcome: 'sent', early: null } as const;

type Action = typeof action extends fc.Arbitrary<infer A> ? A : never;
type Delivery = Extract<Action, { kind: 'send' }>;

interface Occurrence {
	message: string;
	campaign: string | null;
	type: string;
	machine: boolean;
	at: Micros;
}

function countByHand(
	occurrences: readonly Occurrence[],
	query: { from: string; to: string; campaign: string | null; human: boolean; zone: string },
): string[] {
	const firsts = new Map<string, { type: string; at: Micros }>();
	for (const one of occurrences) {
		if (query.campaign !== null && one.campaign !== query.campaign) continue;
		if (query.human && one.machine && audienceTypes.includes(one.type)) continue;
		const key = `${one.message} ${one.type}`;
		const known = firsts.get(key);
		if (known === undefined || one.at < known.at) firsts.set(key, one);
	}
	const counts = new Map<string, number>();
	for (const { type, at } of firsts.values()) {
		const day = dayOf(at, query.zone);
		if (day < query.from || day > query.to) continue;
		counts.set(`${day} ${type}`, (counts.get(`${day} ${type}`) ?? 0) + 1);
	}
	return [...counts].map(([key, count]) => `${key} ${count}`).sort();
}

/** Counts messages that have one of three events within the range. */
function attemptedByHand(
	occurrences: readonly Occurrence[],
	query: { from: string; to: string; campaign: string | null; zone: string },
): number {
	const types = ['SENT', 'SOFTBOUNCED', 'HARDBOUNCED'];
	const messages = new Set(occurrences.map(({ message }) => message));
	return [...messages].filter((message) =>
		types.some((type) => {
			const of = occurrences.filter((one) => one.message === message && one.type === type);
			return countByHand(of, { ...query, human: false }).length > 0;
		}),
	).length;
}

async function play(actions: readonly Action[]) {
	const store = await openStore(':memory:', { clock: fixedClock, mode: 'create', eventDelayMs: 0 });
	await verify(store);
	const messages: { id: string; campaign: string | null }[] = [];
	const occurrences: Occurrence[] = [];
	let zone = 'UTC';
	const record = async (message: string, campaign: string | null, event: TrackedEvent) => {
		await store.writes.recordEvents({ events: [event] });
		const { type, machine, at } = event;
		occurrences.push({ message, campaign, type, machine, at });
	};
	const deliver = async ({ at: when, campaign, outcome: kind, early }: Delivery) => {
		await send(store, [`p${messages.length}@example.org`], { campaign, tag: 'tag', now: when });
		const [leased] = await store.queue.lease({
			owner: 'w',
			now: when,
			until: when + hour,
			max: 1,
			scope: null,
		});
		if (leased === undefined) throw new Error('nothing was due');
		if (early !== null)
			await record(leased.message, campaign, eventOf(leased.message, early, { at: when + 30 * hour }));
		const { outcome, type } = outcomes[kind];
		await store.queue.settle({ settlements: [{ ...leased, at: when + hour, outcome }] });
		const one = { message: leased.message, campaign, machine: false };
		occurrences.push({ ...one, type: 'CREATED', at: when }, { ...one, type, at: when + hour });
		messages.push({ id: leased.message, campaign });
	};
	for (const step of [{ ...firstStep, at: start }, ...actions]) {
		if (step.kind === 'send') await deliver(step);
		else if (step.kind === 'zone') {
			zone = step.zone;
			await store.writes.putSettings({ values: { time_zone: zone }, now: start });
		} else {
			const message = messages[step.message % messages.length];
			if (message === undefined) continue;
			const { type, at, machine } = step;
			await record(message.id, message.campaign, eventOf(message.id, type, { at, machine, link: step.link }));
		}
	}
	return { store, occurrences, zone };
}

describe('daily figures', () => {
	it('equal a direct count over every range, for any history', async () => {
		const days = fc.integer({ min: 0, max: 6 }).map((days) => `2026-03-${27 + Math.min(days, 4)}`);
		const run = fc.asyncProperty(
			fc.array(action, { maxLength: 25 }),
			days,
			days,
			async (actions, one, two) => {
				const { store, occurrences, zone } = await play(actions);
				const [from, to] = one < two ? [one, two] : [two, one];
				for (const campaign of [null, 'c', 'd']) {
					for (const human of [false, true]) {
						for (const tag of [null, 'tag']) {
							const found = await store.reads.reportFigures({ from, to, campaign, tag, human });
							const seen = found.daily.map((row) => `${row.day} ${row.type} ${row.count}`).sort();
							expect(seen).toEqual(countByHand(occurrences, { from, to, campaign, human, zone }));
							expect(found.attempted).toBe(attemptedByHand(occurrences, { from, to, campaign, zone }));
						}
					}
				}
				expect(await store.reads.checkCounts({})).toMatchObject({ figures: 0 });
				await store.close();
			},
		);
		await fc.assert(run, { numRuns: 150 });
	});
});
