import { afterEach, describe, expect, it } from 'vitest';
import type { ImportSpec } from '../../src/api/capabilities.js';
import { ApiError } from '../../src/api/errors.js';
import { SingleImports } from '../../src/jobs/single-imports.js';
import { type Deployment, type DeploymentOptions, startDeployment } from '../support/deployment.js';
import { refuses } from '../support/refuses.js';

let deployment: Deployment;

afterEach(() => deployment.close());

const start = async (options: DeploymentOptions = {}) => {
	deployment = await startDeployment(options);
	return deployment;
};

async function importRows(
	[columns = [], ...rows]: (readonly (string | null)[])[],
	more: Partial<ImportSpec> & { size?: number; concurrency?: number; pauses?: number[] } = {},
) {
	const { size = 64, concurrency = 8, pauses = [], ...given } = more;
	const spec = { list_id: deployment.listId, on_conflict: 'update', reactivate: false, ...given } as const;
	const sleep = async (ms: number) => void pauses.push(ms);
	const imports = new SingleImports(deployment.api, { concurrency, sleep, keep: null });
	const { id } = await imports.open('k', spec);
	const rejects: string[] = [];
	for (let first = 0; first < rows.length; first += size) {
		const cells = rows.slice(first, first + size).flat();
		const names = columns.map((name) => name ?? '');
		const ack = await imports.put(id, { first, columns: names, cells });
		rejects.push(...ack.rejects.map(({ row, code, error }) => `${row} ${code} ${error}`));
	}
	return { counts: await imports.finish(), rejects, reasonsLeftOut: imports.reasonsLeftOut };
}

const counts = (more: Record<string, number>) => ({
	created: 0,
	updated: 0,
	unchanged: 0,
	duplicate: 0,
	rejected: 0,
	...more,
});

const lost = () => new ApiError('network', 'the connection was cut', { unanswered: true });

describe('an import on another service', () => {
	it('creates, changes or keeps each person, and counts each row once', async () => {
		await start();
		await deployment.add({ email: 'ann@example.com', name: 'Ann', meta: { city: 'Oslo', plan: 'pro' } });
		await deployment.add({ email: 'bob@example.com', name: 'Bob' });
		const { counts: found, rejects } = await importRows([
			['email', 'name', 'meta.city'],
			['ANN@example.com', null, 'Rome'],
			['bob@example.com', 'Bob', null],
			['carl@example.com', 'Carl', 'Paris'],
			['nobody', 'N', null],
			['Carl@Example.com', 'Carl again', null],
		]);
		expect(found).toEqual(counts({ created: 1, updated: 1, unchanged: 1, duplicate: 1, rejected: 1 }));
		expect(rejects).toEqual([
			'3 invalid email: Enter a valid email address.',
			'4 duplicate email: Carl@Example.com is in this import already.',
		]);
		expect(await deployment.people()).toEqual({
			'ann@example.com': { name: 'Ann', is_active: true, meta: { city: 'Rome', plan: 'pro' } },
			'bob@example.com': { name: 'Bob', is_active: true, meta: {} },
			'carl@example.com': { name: 'Carl', is_active: true, meta: { city: 'Paris' } },
		});
	});

	it('makes a person with a disable reason inactive, and counts the reasons that are left out', async () => {
		await start();
		const { counts: found, reasonsLeftOut } = await importRows([
			['email', 'disable_reason'],
			['ann@example.com', 'UNSUBSCRIBED'],
			['bob@example.com', null],
		]);
		expect({ found, reasonsLeftOut }).toEqual({ found: counts({ created: 2 }), reasonsLeftOut: 1 });
		expect(await deployment.people()).toMatchObject({
			'ann@example.com': { is_active: false },
			'bob@example.com': { is_active: true },
		});
	});

	it('rejects a row with the service’s own message and code', async () => {
		await start();
		const { rejects } = await importRows([
			['email', 'name', 'meta.fax'],
			['ann@example.com', 'x'.repeat(256), null],
			['bob@example.com', null, '1'],
		]);
		expect(rejects).toEqual([
			'0 max_length name: Ensure this field has no more than 255 characters.',
			'1 unknown_variable meta: Unknown variable: fax.',
		]);
	});
});

describe('an existing person', () => {
	const hundred = async () => {
		for (let at = 0; at < 100; at += 1) await deployment.add({ email: `old${at}@example.com` });
	};
	const rowsOf = (count: number) => [
		['email'],
		...Array.from({ length: count }, (_, at) => [`old${at}@example.com`]),
	];

	it('is looked up by address if the import has fewer rows than the list has pages', async () => {
		await start({ pageSize: 10 });
		await hundred();
		expect((await importRows(rowsOf(9))).counts).toEqual(counts({ unchanged: 9 }));
		expect(deployment.calls.filter((call) => !call.includes('email__exact'))).toEqual(['page 1']);
	});

	it('is found by reading the whole list if the import has as many rows as the list has pages', async () => {
		await start({ pageSize: 10 });
		await hundred();
		expect((await importRows(rowsOf(10), { size: 5 })).counts).toEqual(counts({ unchanged: 10 }));
		expect(deployment.calls.filter((call) => call.startsWith('page email__exact'))).toHaveLength(5);
		expect(deployment.calls.filter((call) => /^page \d+$/.test(call))).toHaveLength(11);
	});

	it('is read again before the import merges new meta values', async () => {
		let isMeddled = false;
		await start({
			before: async (call) => {
				if (call !== 'get 1' || isMeddled) return;
				isMeddled = true;
				await deployment.api.subscribers(deployment.listId).patch(1, { meta: { plan: 'pro' } });
			},
		});
		await deployment.add({ email: 'ann@example.com' });
		await importRows([
			['email', 'meta.city'],
			['ann@example.com', 'Oslo'],
		]);
		expect(await deployment.people()).toMatchObject({
			'ann@example.com': { meta: { plan: 'pro', city: 'Oslo' } },
		});
	});

	it('is found after the service reports a duplicate', async () => {
		await start({
			before: async (call) => {
				if (call === 'create ann@example.com') await deployment.add({ email: 'Ann@example.com', name: 'A' });
			},
		});
		const rows = [
			['email', 'name'],
			['ann@example.com', 'Ann'],
		];
		expect((await importRows(rows)).counts).toEqual(counts({ updated: 1 }));
		expect(await deployment.people()).toMatchObject({ 'Ann@example.com': { name: 'Ann' } });
	});

	it('is created again if someone deletes the person during the import', async () => {
		await start({
			before: async (call) => {
				if (call === 'patch 1') await deployment.api.subscribers(deployment.listId).delete(1);
			},
		});
		await deployment.add({ email: 'ann@example.com' });
		const rows = [
			['email', 'name'],
			['ann@example.com', 'Ann'],
		];
		expect((await importRows(rows)).counts).toEqual(counts({ created: 1 }));
	});
});

describe('a request without an answer', () => {
	const rows = [
		['email', 'name'],
		['ann@example.com', 'Ann'],
		['bob@example.com', 'Bob'],
	];
	const once = (name: string) => {
		let isDone = false;
		return (call: string) => {
			if (call !== name || isDone) return;
			isDone = true;
			throw lost();
		};
	};

	it('is counted once if a look-up shows that it took effect', async () => {
		await start({ after: once('create ann@example.com') });
		expect((await importRows(rows)).counts).toEqual(counts({ created: 2 }));
		expect(Object.keys(await deployment.people())).toEqual(['bob@example.com', 'ann@example.com'].sort());
	});

	it('is repeated if it created nothing', async () => {
		await start({ before: once('create ann@example.com') });
		expect((await importRows(rows)).counts).toEqual(counts({ created: 2 }));
		expect(deployment.calls.filter((call) => call === 'create ann@example.com')).toHaveLength(2);
	});

	it('gives its row the error code “unknown” if the look-up gets no answer either', async () => {
		await start({
			before: (call) => {
				if (call.includes('ann')) throw lost();
			},
		});
		expect(await importRows(rows)).toMatchObject({
			counts: counts({ created: 1, rejected: 1 }),
			rejects: [
				'0 unknown the service did not confirm this row, so it may or may not have been saved: the connection was cut',
			],
		});
	});

	it('is counted as an update if it changed the person', async () => {
		await start({
			after: (call) => {
				if (call === 'patch 1') throw lost();
			},
		});
		await deployment.add({ email: 'ann@example.com' });
		expect((await importRows(rows)).counts).toEqual(counts({ created: 1, updated: 1 }));
	});

	it('ends the import if the service is down', async () => {
		await start({
			before: (call) => {
				if (call !== 'page 1') throw lost();
			},
		});
		const many = Array.from({ length: 60 }, (_, at) => [`p${at}@example.com`]);
		await refuses(importRows([['email'], ...many]), 'network');
	});

	it('differs from a request with a 5xx answer, whose row is rejected', async () => {
		await start({
			before: (call) => {
				if (call === 'create ann@example.com') throw new ApiError('server_error', 'HTTP 500');
			},
		});
		expect(await importRows(rows)).toMatchObject({
			counts: counts({ created: 1, rejected: 1 }),
			rejects: ['0 server_error HTTP 500'],
		});
	});
});

describe('a busy service', () => {
	const busy = () => new ApiError('unavailable', 'maintenance');
	const rows = [
		['email', 'name'],
		['ann@example.com', 'Ann'],
		['bob@example.com', 'Bob'],
	];

	it('gets the request again, and no row is rejected', async () => {
		const failed = new Set<string>();
		await start({
			before: (call) => {
				if (!/^(create|patch)/.test(call) || failed.has(call)) return;
				failed.add(call);
				throw busy();
			},
		});
		await deployment.add({ email: 'ann@example.com' });
		expect((await importRows(rows)).counts).toEqual(counts({ created: 1, updated: 1 }));
	});
});

describe('a throttling service', () => {
	it('delays all requests for the time of its Retry-After', async () => {
		let left = 2;
		await start({
			before: (call) => {
				if (!call.startsWith('create') || left === 0) return;
				left -= 1;
				throw new ApiError('throttled', 'slow down', { retryAfterMs: 7_000 });
			},
		});
		const pauses: number[] = [];
		const rows = Array.from({ length: 5 }, (_, at) => [`p${at}@example.com`]);
		const { counts: found } = await importRows([['email'], ...rows], { pauses, concurrency: 1 });
		expect({ found, pauses }).toEqual({ found: counts({ created: 5 }), pauses: [7_000, 7_000] });
	});

	it('makes the import fail after ten minutes of waiting, and acknowledged rows stay stored', async () => {
		await start({
			before: (call) => {
				if (call === 'create b@example.com')
					throw new ApiError('throttled', 'slow down', { retryAfterMs: 1_000 });
			},
		});
		const pauses: number[] = [];
		const rows = [['email'], ['a@example.com'], ['b@example.com']];
		await refuses(importRows(rows, { pauses, size: 1 }), 'throttled');
		expect(pauses.slice(0, 6)).toEqual([1_000, 1_000, 1_000, 2_000, 4_000, 8_000]);
		const waited = pauses.reduce((sum, ms) => sum + ms, 0);
		expect(waited).toBeGreaterThan(10 * 60_000);
		expect(waited).toBeLessThan(11 * 60_000);
		expect(Object.keys(await deployment.people())).toEqual(['a@example.com']);
	});
});

describe('an import session', () => {
	const spec = () => ({ list_id: deployment.listId, on_conflict: 'update', reactivate: false }) as const;
	const batch = (first: number, ...cells: string[]) => ({ first, columns: ['email'], cells });

	it('repeats its answer to a repeated batch, and rejects a gap', async () => {
		await start();
		const imports = new SingleImports(deployment.api, { concurrency: 2, keep: null });
		const { id } = await imports.open('k', spec());
		const ack = await imports.put(id, batch(0, 'a@example.com', 'b@example.com'));
		expect(await imports.put(id, batch(0, 'a@example.com', 'b@example.com'))).toEqual(ack);
		await refuses(imports.put(id, batch(3, 'c@example.com')), 'conflict');
		expect(await imports.open('k', spec())).toEqual({ id, position: 2, counts: counts({ created: 2 }) });
		expect(await imports.finish()).toEqual(counts({ created: 2 }));
	});

	it('ends with not_found if its list is missing, and keeps acknowledged rows', async () => {
		await start();
		const imports = new SingleImports(deployment.api, { concurrency: 2, keep: null });
		await refuses(imports.open('x', { ...spec(), list_id: 99 }), 'not_found');
		const { id } = await imports.open('k', spec());
		await imports.put(id, batch(0, 'a@example.com'));
		await deployment.api.lists.delete(deployment.listId);
		await refuses(imports.put(id, batch(1, 'b@example.com')), 'not_found');
		expect(await imports.open('k', spec())).toEqual({ id, position: 1, counts: counts({ created: 1 }) });
	});
});
