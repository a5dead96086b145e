import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventType, Uuid } from '../../src/api/records.js';
import { createEngine, type Engine } from '../../src/engine/engine.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';

// 2026-11-21, 23:30 in UTC: the next day has begun in Oslo.
const now = Date.UTC(2026, 10, 21, 23, 30) * 1000;
const clock = { now: () => now };
let ids = 0;
let store: Store;
let engine: Engine;

beforeEach(async () => {
	store = await openStore(':memory:', { clock, mode: 'create' });
	engine = createEngine({
		store,
		clock,
		newId: () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`,
		newSecret: () => 'secret',
		ports: {
			checkTarget: async () => null,
			notifyTest: async () => ({ result: true, status_code: 200, error: null, duration_ms: 0 }),
			renderMessage: async () => null,
			whyPaused: () => null,
		},
	});
	await engine.ext.senders.create({ email: 'news@example.com' });
});
afterEach(() => engine.close());

async function sent(count: number, tag = 'a'): Promise<Uuid[]> {
	const to = Array.from({ length: count }, (_, i) => `${tag}${i}@example.com`);
	const { messages } = await engine.send({ from: 'news@example.com', to, subject: 's', text_body: 't', tag });
	const leased = await store.queue.lease({ owner: 'w', now, until: now + 1e6, max: count, scope: null });
	const reply = { phase: 'answer', code: 250, enhanced: null, text: 'ok' } as const;
	await store.queue.settle({
		settlements: leased.map(({ message, fence }) => ({
			message,
			fence,
			at: now,
			outcome: { kind: 'sent', reply },
		})),
	});
	return messages.map(({ id }) => id);
}

const happen = (
	message: Uuid | undefined,
	type: Exclude<EventType, 'CREATED' | 'SENT'>,
	machine = false,
	link: number | null = null,
) =>
	store.writes.recordEvents({
		events: [
			{
				message: message ?? '',
				type,
				at: now,
				link,
				machine,
				ip: null,
				user_agent: null,
				url: null,
				smtp_code: null,
				diagnostic: null,
			},
		],
	});

describe('the report', () => {
	it('counts a message once however often it is opened, and rounds to two digits', async () => {
		const [first, second] = await sent(3);
		for (let i = 0; i < 3; i++) await happen(first, 'OPENED');
		await happen(first, 'REDIRECTED', false, 0);
		await happen(first, 'REDIRECTED', false, 1);
		await happen(second, 'REDIRECTED', false, 0);
		expect((await engine.report({})).total).toEqual({
			sent: 3,
			opened: 1,
			opened_percent: '33.33',
			redirected_percent: 66.67,
			softbounced_percent: 0,
			unsubscribed_percent: 0,
			hardbounced_percent: 0,
		});
	});

	it('shows 0 for types not asked for, and still takes percentages of what was sent', async () => {
		const [first] = await sent(2);
		await happen(first, 'OPENED');
		expect((await engine.report({ event_types: ['OPENED'] })).total).toMatchObject({
			sent: 0,
			opened: 1,
			opened_percent: '50',
		});
		expect((await engine.report({ event_types: ['SENT'] })).total).toMatchObject({
			sent: 2,
			opened: 0,
			opened_percent: '0',
		});
	});

	it('leaves machines out for people only, and other tags out for one', async () => {
		const [first] = await sent(2, 'a');
		await sent(1, 'b');
		await happen(first, 'OPENED', true);
		expect((await engine.report({})).total).toMatchObject({ sent: 3, opened: 1 });
		expect((await engine.ext.reports.report({ human: true })).total).toMatchObject({ sent: 3, opened: 0 });
		expect((await engine.ext.reports.report({ tag: 'b' })).total).toMatchObject({ sent: 1, opened: 0 });
	});

	it('counts the days of the database’s time zone', async () => {
		await sent(1);
		expect((await engine.report({})).data.at(-1)).toEqual({ date: '21.11.2026', opened: 0, sent: 1 });
		await store.writes.putSettings({ values: { time_zone: 'Europe/Oslo' }, now });
		expect((await engine.report({})).data.at(-1)).toEqual({ date: '22.11.2026', opened: 0, sent: 1 });
	});
});
