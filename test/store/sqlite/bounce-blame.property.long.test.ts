// One bounce never suppresses another address: whatever strangers report, only whom a message went to can be stopped.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	day,
	eventOf,
	fixedClock,
	newUuid,
	noon,
	send,
	unknown550,
	verify,
} from '../../contract/store/fixture.js';

/** Alike, so that a careless comparison takes one for another. */
const names = ['ann', 'ann+x', 'ann.b', 'joann', 'an', 'postmaster'] as const;
const name = fc.constantFrom(...names);
const report = fc.record({
	kind: fc.constantFrom('bounce' as const, 'complaint' as const),
	matched: fc.constantFrom('return_path' as const, 'message_id' as const),
	recipients: fc.array(
		fc.record({ addresses: fc.array(name, { minLength: 1, maxLength: 2 }), hard: fc.boolean() }),
		{
			maxLength: 3,
		},
	),
});
const situation = fc.record({
	to: name,
	cc: fc.array(name, { maxLength: 2 }),
	bcc: fc.array(name, { maxLength: 1 }),
	outcome: fc.constantFrom('sent', 'bounced', 'queued'),
	event: fc.option(fc.constantFrom('HARDBOUNCED' as const, 'SOFTBOUNCED' as const)),
	reports: fc.array(report, { minLength: 1, maxLength: 4 }),
});

let store: Store;
let number = 0;
let stopped = 0;
beforeAll(async () => {
	store = await openStore(':memory:', { clock: fixedClock, mode: 'create', eventDelayMs: 0 });
	await verify(store);
});
afterAll(() => store.close());

it('stops nobody a message did not go to, over random reports', async () => {
	const property = fc.asyncProperty(situation, async (one) => {
		number += 1;
		const domain = `d${number}.example.org`;
		const at = (local: string) => `${local}@${domain}`;
		const bystanders = names.filter((local) => ![one.to, ...one.cc, ...one.bcc].includes(local)).map(at);
		await happen(one, at);
		const page = { page: 1, page_size: 100, now: noon + day };
		const filter = { email__icontains: `@${domain}` };
		const found = (await store.reads.pageSuppressions({ ...page, filter })).results.map(({ email }) => email);
		expect(found.filter((email) => bystanders.includes(email))).toEqual([]);
		stopped += found.length;
	});
	await fc.assert(property, { numRuns: 2_000 });
	// The reports did reach whom they were about.
	expect(stopped).toBeGreaterThan(500);
});

async function happen(
	one: typeof situation extends fc.Arbitrary<infer S> ? S : never,
	at: (local: string) => string,
) {
	const envelope = {
		from: 'desk@example.org',
		reply_to: [],
		cc: one.cc.map(at),
		bcc: one.bcc.map(at),
		headers: {},
	};
	const { answer, submission } = await send(store, [at(one.to)], { envelope });
	const message = answer.messages[0]?.id ?? '';
	const scope = { submission };
	const [leased] = await store.queue.lease({ owner: 'w', now: noon, until: noon + day, max: 1, scope });
	if (leased === undefined) throw new Error('nothing leased');
	const outcome =
		one.outcome === 'sent'
			? ({ kind: 'sent', reply: accepted250 } as const)
			: one.outcome === 'bounced'
				? ({ kind: 'bounced', reply: unknown550, suppress: true } as const)
				: ({ kind: 'released', why: 'drain' } as const);
	await store.queue.settle({ settlements: [{ message, fence: leased.fence, at: noon, outcome }] });
	if (one.event !== null) await store.writes.recordEvents({ events: [eventOf(message, one.event)] });
	for (const { kind, matched, recipients } of one.reports) {
		const reported = recipients.map(({ addresses, hard }) => {
			return { addresses: addresses.map(at), hard, smtp_code: '5.1.1', diagnostic: null };
		});
		const report = { sha256: newUuid(), at: noon, message, matched, kind, recipients: reported };
		await store.writes.recordReport(report);
	}
}
