/** Limits that change while messages wait for them. */
import { hostname } from 'node:os';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { leaseInSlices, putSettingsInSlices } from '../../../src/store/slices.js';
import { createCore } from '../../../src/store/sqlite/core.js';
import { migrate } from '../../../src/store/sqlite/migrations.js';
import { createSql } from '../../../src/store/sqlite/sql.js';
import { stepsOf } from '../../../src/store/sqlite/store.js';
import { createWriter } from '../../../src/store/sqlite/writer.js';
import { accepted250, hour, newUuid, noon, submissionOf } from '../../contract/store/fixture.js';

const second = 1_000_000;
const limited = { values: { recipient_domain_limits: '*=1/1h' }, now: noon };
const lifted = { values: { recipient_domain_limits: null }, now: noon + 2 * second };

/** Seven messages, of which five wait for the limit of their domain, one was sent and one is deferred. */
function startHeld() {
	const db = new Database(':memory:');
	onTestFinished(() => void db.close());
	const me = { id: 'me', role: 'cli', host: hostname(), pid: process.pid };
	migrate(db, { path: ':memory:', me, now: noon });
	const core = createCore(createSql(db));
	let groups = 0;
	let failAt = Number.NaN;
	const writer = createWriter({
		db,
		path: ':memory:',
		lockTimeoutMs: 100,
		pace: () => ({ maxGroupMs: 1_000, pauseMs: 0 }),
		beforeGroup: () => {
			groups += 1;
			if (groups === failAt) throw new Error('the process was killed');
		},
		afterLongGroup: () => undefined,
		random: () => 0.5,
	});
	const lease = (now: number, max = 10) => ({
		owner: newUuid(),
		now,
		until: now + hour,
		max,
		scope: null,
	});
	core.createSender({ from_email: 'desk@example.org', email_key: 'desk@example.org', now: noon });
	core.acceptSubmission({ ...submissionOf(['d@b.test']), key: null });
	const [deferred] = core.lease(lease(noon));
	const reply = { ...accepted250, code: 451 };
	const outcome = { kind: 'deferred' as const, reply, due_at: noon + hour };
	if (deferred !== undefined) core.settle({ settlements: [{ ...deferred, at: noon, outcome }] });
	core.putSettings(limited);
	while (core.wakeHeldSlice({ limit: 100 }));
	const people = Array.from({ length: 6 }, (_, index) => `p${index}@a.test`);
	core.acceptSubmission({ ...submissionOf(people), key: null });
	for (const message of core.lease(lease(noon))) {
		const sent = { kind: 'sent' as const, reply: accepted250 };
		core.settle({ settlements: [{ ...message, at: noon, outcome: sent }] });
	}
	return {
		core,
		writer,
		steps: stepsOf(core, writer),
		lease,
		groups: () => groups,
		failAfter: (more: number) => {
			failAt = groups + more + 1;
		},
		due: (now: number) => core.queueState({ now }).due,
	};
}

describe('messages that wait for a limit that is lifted', () => {
	it('are woken in several transactions, each of a few', async () => {
		const { core, steps, groups, due } = startHeld();
		expect(due(noon + second)).toBe(0);
		await putSettingsInSlices(steps, lifted, 2);
		expect(groups()).toBeGreaterThanOrEqual(4);
		expect(due(noon + second)).toBe(5);
		expect(core.getSettings()).toEqual({});
	});

	it('keep the time of those that were deferred', async () => {
		const { steps, due } = startHeld();
		await putSettingsInSlices(steps, lifted, 2);
		expect(due(noon + hour - 1)).toBe(5);
		expect(due(noon + hour)).toBe(6);
	});

	it('are woken by whoever leases next, when the process that lifted it died', async () => {
		const { core, writer, steps, lease, failAfter, due } = startHeld();
		failAfter(2);
		await expect(putSettingsInSlices(steps, lifted, 2)).rejects.toThrow('the process was killed');
		expect(due(noon + second)).toBe(2);
		const leaseSlice = (limit: number) =>
			writer.write(() => core.leaseSlice({ ...lease(noon + 3 * second), limit }));
		expect(await leaseInSlices(leaseSlice, 2)).toHaveLength(5);
		expect(core.getSettings()).toEqual({});
	});

	it('are looked at from the start when the limits change once more', async () => {
		const { steps, failAfter, due } = startHeld();
		failAfter(2);
		await expect(putSettingsInSlices(steps, lifted, 2)).rejects.toThrow('the process was killed');
		await putSettingsInSlices(steps, { ...lifted, values: { send_limit: '9/1h' } }, 2);
		expect(due(noon + second)).toBe(5);
	});
});
