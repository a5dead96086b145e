import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ImportSpec } from '../../../src/api/capabilities.js';
import { systemClock } from '../../../src/api/datetime.js';
import { ApiError } from '../../../src/api/errors.js';
import { type KeptWhere, keepImports } from '../../../src/cli/connect/imports.js';
import { SingleImports } from '../../../src/jobs/single-imports.js';
import { type Deployment, type DeploymentOptions, startDeployment } from '../../support/deployment.js';
import { keptImports } from '../../support/kept-rows.js';

let deployment: Deployment;
let folder: string;

beforeEach(async () => {
	folder = join(await mkdtemp(join(tmpdir(), 'mailctl-jobs-')), 'jobs');
});
afterEach(() => deployment.close());

const start = async (options: DeploymentOptions = {}) => {
	deployment = await startDeployment(options);
};

/** Opens the import as a new process does after a kill: only the files remain. */
function run(
	more: { concurrency?: number; earlier?: KeptWhere['earlier']; on?: ImportSpec['on_conflict'] } = {},
) {
	const { concurrency = 1, earlier = 'resume', on = 'update' } = more;
	const where = { folder, deployment: 'https://news.example.com', clock: systemClock };
	const imports = new SingleImports(deployment.api, {
		concurrency,
		keep: keepImports({ ...where, earlier }),
		sleep: async () => {},
	});
	const spec = { list_id: deployment.listId, on_conflict: on, reactivate: false };
	return {
		close: () => imports.close(),
		begin: () => imports.open('k', spec),
		put: (first: number, ...rows: (readonly [string, (string | null)?])[]) =>
			imports.put('k', {
				first,
				columns: ['email', 'name'],
				cells: rows.flatMap(([email, name]) => [email, name ?? null]),
			}),
		end: () => imports.finish(),
		leftOut: () => imports.reasonsLeftOut,
	};
}

const counts = (more: Record<string, number>) => ({
	created: 0,
	updated: 0,
	unchanged: 0,
	duplicate: 0,
	rejected: 0,
	...more,
});

/** Stands for a killed process: the answer is lost, and the client does not retry this error. */
const dies = () => new ApiError('not_authenticated', 'the process ends here');

const nothing = { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };

describe('a resumed import', () => {
	it('starts after the last acknowledged row, and keeps its counts and known addresses', async () => {
		await start();
		const first = run();
		await first.begin();
		await first.put(0, ['a@example.com'], ['bad'], ['A@example.com']);
		await first.close();
		const second = run();
		const soFar = { ...nothing, created: 1, duplicate: 1, rejected: 1 };
		expect(await second.begin()).toEqual({ id: 'k', position: 3, counts: soFar });
		const { counts: found } = await second.put(3, ['A@EXAMPLE.com'], ['b@example.com']);
		expect(found).toEqual(counts({ created: 1, duplicate: 1 }));
		expect(await second.end()).toEqual(counts({ created: 2, duplicate: 2, rejected: 1 }));
		expect(await keptImports(folder)).toEqual({ keys: [], rows: 0 });
	});

	it('returns the stored answer for the last batch without new requests', async () => {
		await start();
		const first = run();
		await first.begin();
		const ack = await first.put(0, ['a@example.com'], ['bad']);
		await first.close();
		const second = run();
		await second.begin();
		const calls = deployment.calls.length;
		expect(await second.put(0, ['a@example.com'], ['bad'])).toEqual(ack);
		expect(deployment.calls).toHaveLength(calls);
		await expect(second.put(1, ['bad'])).rejects.toMatchObject({ code: 'conflict' });
		await second.close();
	});

	it('counts a subscriber as created even if the answer to the creation was lost', async () => {
		let isDead = false;
		await start({
			before: (call) => {
				if (isDead || call === 'create c@example.com') throw dies();
			},
			after: (call) => {
				if (call !== 'create b@example.com') return;
				isDead = true;
				throw dies();
			},
		});
		await deployment.add({ email: 'old@example.com' });
		const rows = [
			['old@example.com'],
			['a@example.com', 'A'],
			['b@example.com', 'B'],
			['B@example.com'],
			['c@example.com'],
		] as const;
		const first = run({ concurrency: 4 });
		await first.begin();
		await expect(first.put(0, ...rows)).rejects.toMatchObject({ message: 'the process ends here' });
		await first.close();
		const people = deployment;
		isDead = false;
		const second = run();
		expect(await second.begin()).toEqual({ id: 'k', position: 0, counts: nothing });
		const { counts: found } = await second.put(0, ...rows.slice(0, 4));
		expect(found).toEqual(counts({ created: 2, unchanged: 1, duplicate: 1 }));
		expect(people.calls.filter((call) => call === 'create b@example.com')).toHaveLength(1);
		await second.close();
	});

	it.each([
		'skip',
		'error',
	] as const)('counts a subscriber as created after a lost answer, even with --on-conflict %s', async (on) => {
		await start({
			after: (call) => {
				if (call === 'create a@example.com') throw dies();
			},
		});
		const first = run({ on });
		await first.begin();
		await expect(first.put(0, ['a@example.com', 'A'])).rejects.toThrow();
		await first.close();
		const second = run({ on });
		await second.begin();
		expect((await second.put(0, ['a@example.com', 'A'])).counts).toEqual(counts({ created: 1 }));
		await second.close();
	});

	it('counts a subscriber as updated even if the answer to the change was lost', async () => {
		await start({
			after: (call) => {
				if (call === 'patch 1') throw dies();
			},
		});
		await deployment.add({ email: 'ann@example.com' });
		const first = run();
		await first.begin();
		await expect(first.put(0, ['ann@example.com', 'Ann'])).rejects.toThrow();
		await first.close();
		const second = run();
		await second.begin();
		expect((await second.put(0, ['ann@example.com', 'Ann'])).counts).toEqual(counts({ updated: 1 }));
		await second.close();
	});

	it('counts existing subscribers as unchanged if the user starts from the beginning', async () => {
		await start();
		const first = run();
		await first.begin();
		await first.put(0, ['a@example.com']);
		await first.close();
		const second = run({ earlier: 'forget' });
		expect(await second.begin()).toEqual({ id: 'k', position: 0, counts: nothing });
		expect((await second.put(0, ['a@example.com'])).counts).toEqual(counts({ unchanged: 1 }));
		await second.close();
	});

	it('is locked by the process that runs it', async () => {
		await start();
		const first = run();
		await first.begin();
		await expect(run().begin()).rejects.toMatchObject({ name: 'JobError', code: 'in_use' });
		await expect(run({ earlier: 'forget' }).begin()).rejects.toMatchObject({ code: 'in_use' });
		await first.close();
	});
});
