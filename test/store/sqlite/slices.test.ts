import { describe, expect, it } from 'vitest';
import { createSliceSize, inSlices, type Step } from '../../../src/store/slices.js';
import { newUuid } from '../../contract/store/fixture.js';
import { startLine } from './import-lines.js';

const twoRows = { rows: () => 2, took: () => undefined };

describe('a batch in slices', () => {
	const people = ['a@x.org', 'b@x.org', 'a@x.org', 'no address', 'c@x.org'];
	const whole = {
		kind: 'acknowledged',
		ack: {
			position: 5,
			counts: { created: 3, updated: 0, unchanged: 0, duplicate: 1, rejected: 1 },
			rejects: [
				{ row: 2, code: 'duplicate' },
				{ row: 3, code: 'invalid' },
			],
		},
	};

	it('is committed slice by slice, and gets a single answer', async () => {
		const { line, command, groups } = startLine(twoRows);
		expect(await line.put(command(0, ...people))).toMatchObject(whole);
		expect(groups()).toBe(3);
	});

	it('gets the same answer if it is repeated, and the next batch can follow', async () => {
		const { line, command } = startLine(twoRows);
		const answer = await line.put(command(0, ...people));
		expect(await line.put(command(0, ...people))).toEqual(answer);
		expect(await line.put(command(5, 'd@x.org'))).toMatchObject({
			ack: { position: 6, counts: { created: 1 } },
		});
		expect(await line.put(command(9, 'e@x.org'))).toEqual({ kind: 'gap', position: 6 });
	});

	it('continues where it was interrupted', async () => {
		const { core, line, command, failAfter } = startLine(twoRows);
		failAfter(1);
		await expect(line.put(command(0, ...people))).rejects.toThrow('the process was killed');
		expect(await line.put(command(9, 'e@x.org'))).toEqual({ kind: 'gap', position: 2 });
		expect(await line.put(command(0, ...people))).toMatchObject(whole);
		expect(core.getList({ id: 1 })?.active_subscribers_count).toBe(3);
	});
});

describe('batches sent without waiting for the previous answer', () => {
	const setup = () => startLine({ rows: () => 100, took: () => undefined });

	it('are stored in order in one commit', async () => {
		const { line, command, groups } = setup();
		const before = groups();
		const acks = await Promise.all([
			line.put(command(0, 'a@x.org', 'b@x.org')),
			line.put(command(2, 'a@x.org')),
			line.put(command(3, 'c@x.org')),
		]);
		expect(acks).toMatchObject([
			{ ack: { position: 2, counts: { created: 2 } } },
			{ ack: { position: 3, rejects: [{ row: 2, code: 'duplicate' }] } },
			{ ack: { position: 4, counts: { created: 1 } } },
		]);
		expect(groups() - before).toBe(1);
	});

	it('need a second commit after ten thousand rejected rows', async () => {
		const { line, command, groups } = startLine({ rows: () => 100_000, took: () => undefined });
		const before = groups();
		const bad = Array.from({ length: 5_000 }, () => 'no address');
		const acks = await Promise.all([
			line.put(command(0, ...bad)),
			line.put(command(5_000, ...bad)),
			line.put(command(10_000, ...bad)),
		]);
		expect(acks).toMatchObject([
			{ ack: { position: 5_000 } },
			{ ack: { position: 10_000 } },
			{ ack: { position: 15_000 } },
		]);
		expect(groups() - before).toBe(2);
	});

	it('get the same answer if they are copies of one batch', async () => {
		const { line, command } = setup();
		const acks = await Promise.all([
			line.put(command(0, 'a@x.org', 'a@x.org')),
			line.put(command(0, 'a@x.org', 'a@x.org')),
			line.put(command(2, 'b@x.org')),
		]);
		expect(acks[0]).toMatchObject({ ack: { position: 2, counts: { created: 1, duplicate: 1 } } });
		expect(acks[1]).toEqual(acks[0]);
		expect(acks[2]).toMatchObject({ ack: { position: 3, counts: { created: 1 } } });
	});

	it('have ids, counts and answers in the order of their rows', async () => {
		const { core, line, command } = setup();
		const acks = await Promise.all([
			line.put(command(0, 'Z@x.org', 'b@x.org', 'no address', 'ß@x.org')),
			line.put(command(4, 'a@x.org', 'z@X.org', 'c@x.org')),
		]);
		const error = 'email: Enter a valid email address.';
		expect(acks).toMatchObject([
			{
				ack: {
					position: 4,
					counts: { created: 2, rejected: 2 },
					rejects: [
						{ row: 2, error },
						{ row: 3, error },
					],
				},
			},
			{
				ack: {
					position: 7,
					counts: { created: 2, duplicate: 1 },
					rejects: [{ row: 5, error: 'email: z@X.org is in this import already.' }],
				},
			},
		]);
		const people = core.sliceSubscribers({ list_id: 1, after: 0, limit: 10, filter: {} }) ?? [];
		expect(people.map(({ id, email }) => [id, email])).toEqual([
			[1, 'Z@x.org'],
			[2, 'b@x.org'],
			[5, 'a@x.org'],
			[7, 'c@x.org'],
		]);
	});

	it('are rejected only if an earlier batch of the same session failed', async () => {
		const { line, command, failAfter } = setup();
		const other = newUuid();
		failAfter(0);
		const outcomes = await Promise.allSettled([
			line.put(command(0, 'a@x.org')),
			line.put({ ...command(0, 'a@x.org'), session: other }),
			line.put(command(1, 'b@x.org')),
		]);
		expect(outcomes.map((one) => (one.status === 'rejected' ? String(one.reason) : one.value))).toEqual([
			expect.stringContaining('the process was killed'),
			{ kind: 'not_found' },
			expect.stringContaining('the process was killed'),
		]);
		expect(await line.put(command(0, 'b@x.org'))).toMatchObject({ ack: { position: 1 } });
	});
});

describe('the size of a slice', () => {
	it('adapts to the time that rows take, by at most a factor of two, and has a minimum', () => {
		const size = createSliceSize(() => 200);
		const learned = (rows: number, heldMs: number) => {
			size.took(rows, heldMs);
			return size.rows();
		};
		expect(size.rows()).toBe(1_000);
		expect(learned(1_000, 20)).toBe(2_000);
		expect(learned(2_000, 250)).toBe(1_600);
		expect(learned(1_600, 4_000)).toBe(800);
		expect(learned(300, 4_000)).toBe(250);
		expect(learned(100, 4_000)).toBe(250);
	});

	it('grows to ten thousand for recipients of a campaign', async () => {
		const limits: number[] = [];
		const size = createSliceSize(() => 2_000);
		const step = async (_: string, { limit = 0 }: { limit?: number }) => {
			limits.push(limit);
			const counts = { staged: limit, suppressed: 0, rejected: 0 };
			return { counts, position: 0, rejects: [], isDone: limits.length === 6 };
		};
		const { addListToCampaign } = inSlices(
			{ step: step as Step, isTrial: false },
			{ rows: size.rows, took: (rows) => size.took(rows, 20) },
		);
		const ack = await addListToCampaign({ campaign: newUuid(), list_id: 1, now: 0 });
		expect(limits).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
		expect(ack?.counts.staged).toBe(35_000);
		limits.length = 0;
		const part = await addListToCampaign({ campaign: newUuid(), list_id: 1, now: 0, for_ms: 0 });
		expect(part).toMatchObject({ is_partial: true, counts: { staged: limits[0] } });
		expect(limits).toHaveLength(1);
	});
});
