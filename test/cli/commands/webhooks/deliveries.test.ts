import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/api/datetime.js';
import { openStore } from '../../../../src/store/open.js';
import { accepted250, deliver, eventOf, send } from '../../../contract/store/fixture.js';
import { makeProject, type Project } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';
import { type NotifiedTarget, startTarget } from '../../../support/target.js';

interface Row {
	id: string;
	state: string;
	attempts: number;
	last_status: number | null;
}

describe('the deliveries of a webhook', () => {
	let sink: SmtpSink;
	let project: Project;
	let target: NotifiedTarget | undefined;
	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		await project.json(['engine', 'settings', 'set', 'allow_private_webhooks', 'true']);
	});
	afterEach(async () => {
		await target?.close();
		await sink.close();
	});
	const hookTo = async (status: number) => {
		target = await startTarget(status);
		await project.json(['webhooks', 'create', '--url', target.url, '--type', 'OPENED']);
	};
	const opened = async (to: string) => {
		const store = await openStore(project.db, { clock: systemClock, mode: 'existing', eventDelayMs: 0 });
		const now = systemClock.now();
		await send(store, [to], { from_key: 'news@example.com', now });
		const id = await deliver(store, { kind: 'sent', reply: accepted250 }, now);
		await store.writes.recordEvents({ events: [eventOf(id, 'OPENED', { at: now })] });
		await store.close();
	};
	const work = () => project.json(['worker', '--drain']);
	const log = async (...more: string[]) =>
		(await project.json(['webhooks', 'deliveries', '1', ...more])) as Row[];

	it('are listed as pending, then as delivered, and are shown with body and every attempt', async () => {
		await hookTo(204);
		await opened('ann@example.org');
		expect(await log()).toMatchObject([{ state: 'pending', attempts: 0, last_status: null }]);
		await work();
		const [row] = await log('--state', 'delivered');
		expect(row).toMatchObject({ state: 'delivered', attempts: 1, last_status: 204 });
		expect(await log('--state', 'failed')).toEqual([]);
		expect(await log('--since', '2100-01-01')).toEqual([]);
		expect(await project.json(['webhooks', 'deliveries', '1', row?.id ?? ''])).toMatchObject({
			...row,
			payload: target?.received[0],
			delivery_attempts: [{ number: 1, status: 204, error: null }],
		});
	});

	it('cannot be shown or replayed if their id is unknown (exit 3) or invalid (exit 2)', async () => {
		await hookTo(204);
		const uuid = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';
		for (const [argv, code] of [
			[['deliveries', '1', uuid], 3],
			[['deliveries', '1', 'x'], 2],
			[['replay', '9', '--failed'], 3],
			[['replay', '1', uuid, '-n'], 3],
			[['replay', '1'], 2],
			[['replay', '1', uuid, '--failed'], 2],
			[['secret', '9'], 3],
		] as const)
			expect(await project.run(['webhooks', ...argv])).toMatchObject({ code });
	});

	it('keep their ids if the command webhooks replay sends them again', async () => {
		await hookTo(204);
		await opened('ann@example.org');
		await work();
		const [first] = await log();
		const replay = (...argv: string[]) => project.json(['webhooks', 'replay', '1', ...argv]);
		expect(await replay('--failed')).toEqual({ replayed: 0 });
		expect(await replay('--since', 'yesterday', '-n')).toMatchObject({ dry_run: true });
		expect(await replay('--since', 'yesterday')).toEqual({ replayed: 1 });
		await work();
		expect(await replay(first?.id ?? '')).toEqual({ replayed: 1 });
		await work();
		expect(new Set(target?.received).size).toBe(1);
		expect(target?.received).toHaveLength(3);
		expect(await log()).toMatchObject([{ id: first?.id, state: 'delivered', attempts: 3 }]);
	});

	it('keep their ids when a replay sends them before the next attempt is due', async () => {
		await hookTo(503);
		await opened('ann@example.org');
		await work();
		const [waiting] = await log();
		expect(waiting).toMatchObject({ state: 'pending', attempts: 1, last_status: 503 });
		const replay = (...argv: string[]) => project.run(['webhooks', 'replay', '1', ...argv]);
		expect((await replay('--failed', '-o', 'json')).stdout).toContain('"replayed": 0');
		expect(await replay(waiting?.id ?? '')).toMatchObject({ code: 0, stderr: '' });
		await work();
		expect(new Set(target?.received).size).toBe(1);
		expect(target?.received).toHaveLength(2);
		expect(await log()).toMatchObject([{ id: waiting?.id, state: 'pending', attempts: 2 }]);
	});

	it('stop when the target answers 410; a replay sends the failed delivery again', async () => {
		await hookTo(410);
		await opened('ann@example.org');
		const run = await project.run(['worker', '--drain']);
		expect(run.stderr).toMatch(/webhook 1 at http:\/\/127\.0\.0\.1:\d+ answered 410/);
		await opened('bob@example.org');
		expect(await log()).toMatchObject([{ state: 'failed' }]);
		expect((await project.run(['webhooks', 'list', '-o', 'wide'])).stdout).toMatch(
			/ STATE\n.* stopped\n\nTimes: UTC\n$/,
		);
		expect(await project.json(['webhooks', 'get', '1'])).not.toHaveProperty('state');
		expect(await project.json(['webhooks', 'replay', '1', '--failed'])).toEqual({ replayed: 1 });
		await work();
		expect(target?.received).toHaveLength(2);
	});

	it('are signed with two secrets after a rotation; the next rotation needs --yes', async () => {
		const secrets = async (...argv: string[]) =>
			(await project.json(['webhooks', 'secret', ...argv])) as {
				secret: string;
				date_retired: string | null;
			}[];
		const [first, ...none] = await secrets();
		expect(first?.secret).toMatch(/^whsec_/);
		expect(none).toEqual([]);
		expect(await secrets('--rotate', '-n')).toMatchObject({ dry_run: true });
		const rotated = await secrets('--rotate');
		expect(rotated.map(({ date_retired }) => date_retired)).toEqual([null, expect.any(String)]);
		expect(rotated[1]?.secret).toBe(first?.secret);
		expect((await project.run(['webhooks', 'secret', '-o', 'name'])).stdout.split('\n')[0]).toBe(
			rotated[0]?.secret,
		);
		// The first secret still signs until tomorrow.
		expect(await project.run(['webhooks', 'secret', '--rotate'])).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('this will drop the older secret, valid until'),
		});
		expect(await secrets()).toEqual(rotated);
		expect((await secrets('--rotate', '--yes')).map(({ secret }) => secret)).not.toContain(first?.secret);
	});
});
