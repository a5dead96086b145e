// Complete runs of `smoke` against mailctl, another service, and servers with one defect each.
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Interrupted } from '../../src/cli/frame/errors.js';
import { type CliOptions, type CliResult, cli, startProgram } from '../support/cli.js';
import { djangoMissing, startDjango } from '../support/drf.js';
import { makeProject, type Project } from '../support/project.js';
import { type RunningServer, startServer } from '../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';
import { type Answered, type Passing, startTampering, type Tamper } from '../support/tampering.js';

let sink: SmtpSink;
let project: Project;
let server: RunningServer;

beforeAll(async () => {
	sink = await startSmtpSink();
	project = await makeProject({ smtp: sink.port });
	for (const name of ['News', 'Offers', 'mailctl-smoke-tests'])
		await project.json(['lists', 'create', '--name', name, '--email-reason', 'r']);
	for (const email of ['ann@example.com', 'bob@example.com', 'ANNA@example.org'])
		await project.json(['subscribers', 'create', '-l', '1', '--email', email]);
	await project.json(['fields', 'create', '--variable', 'mailctl_smoke_city', '--name', 'City']);
	await project.json(['webhooks', 'create', '--url', 'https://mailctl-smoke.invalid/in', '--type', 'OPENED']);
	server = await startServer(project.db);
});
afterAll(async () => {
	await server.stop();
	await sink.close();
});

interface Report {
	run: string;
	target: string;
	checks: { id: string; group: string; outcome: string; detail: string | null }[];
	deviations: { check: string; text: string }[];
	leftovers: { kind: string; id: number; name: string }[];
	counts: Record<string, number>;
}

function smoke(baseUrl: string, argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
	const env = { MAILCTL_TOKEN: server.token, ...options.env };
	return cli(['--base-url', baseUrl, 'smoke', ...argv], { ...options, env });
}

/** Returns all records, to check that a run leaves them unchanged. */
async function holdings(): Promise<unknown> {
	const listed = await Promise.all(
		['lists', 'fields', 'webhooks'].map((word) => project.json([word, 'list'])),
	);
	return [...listed, await project.json(['subscribers', 'list', '-l', '1'])];
}

describe('smoke against mailctl serve', () => {
	it('passes, sends one mail, and leaves the server unchanged', async () => {
		const before = await holdings();
		const words = ['--full', '--send-to', 'sink@example.com', '--from', 'news@example.com', '-o', 'json'];
		const { code, stdout } = await smoke(server.baseUrl, words);
		const report: Report = JSON.parse(stdout);
		expect(report.checks.filter(({ outcome }) => outcome !== 'pass')).toEqual([]);
		expect({ code, deviations: report.deviations, leftovers: report.leftovers }).toEqual({
			code: 0,
			deviations: [],
			leftovers: [],
		});
		expect(report.checks.find(({ id }) => id === 'send.delivered')).toMatchObject({ outcome: 'pass' });
		expect(sink.received.map(({ to }) => to)).toEqual([['sink@example.com']]);
		expect(await holdings()).toEqual(before);
	});

	it('uses only GET by default', async () => {
		const methods = new Set<string>();
		const proxy = await startTampering(server.baseUrl, async (passing, ask) => {
			methods.add(passing.method);
			return ask(passing);
		});
		const { code } = await smoke(proxy.baseUrl, ['--reporter', 'tap']);
		await proxy.close();
		expect({ code, methods: [...methods] }).toEqual({ code: 0, methods: ['GET'] });
	});
});

describe('smoke with a limited token', () => {
	const withScope = async (scope: string, words: readonly string[]) => {
		const made = ['engine', 'tokens', 'create', '--name', scope, '--scope', scope, '-q'];
		const env = { MAILCTL_TOKEN: (await project.run(made)).stdout.trim() };
		const { code, stdout } = await smoke(server.baseUrl, [...words, '-o', 'json'], { env });
		const { checks, deviations }: Report = JSON.parse(stdout);
		const of = (wanted: string) => checks.filter(({ outcome }) => outcome === wanted);
		return {
			code,
			deviations,
			failed: of('fail').map(({ id, detail }) => [id, detail]),
			skipped: of('skip'),
		};
	};

	it('fails the checks that write if the token may only read', async () => {
		const { code, deviations, failed } = await withScope('read', ['--full']);
		const says = (path: string) => `the token does not permit this request: POST ${path} answered 403`;
		expect({ code, deviations, failed }).toEqual({
			code: 11,
			deviations: [],
			failed: [
				['lists.create', says('/sub/lists/')],
				['subscribers.create', says('/sub/lists/')],
				['fields.create', says('/sub/fields/')],
				['webhooks.create', says('/webhooks/')],
			],
		});
	});

	it('skips what the token may not read, and passes', async () => {
		const { code, deviations, failed, skipped } = await withScope('send', []);
		expect({ code, deviations, failed }).toEqual({ code: 0, deviations: [], failed: [] });
		const ids = skipped.map(({ id }) => id);
		expect(ids).toEqual(expect.arrayContaining(['lists.page', 'webhooks.unknown', 'report.shape']));
		expect(skipped.find(({ id }) => id === 'lists.page')?.detail).toBe(
			'the token does not permit this request: GET /sub/lists/ answered 403',
		);
	});
});

describe.skipIf((await djangoMissing()) !== null)('smoke on an independent service', () => {
	it('passes despite throttling and missing authentication challenges, and lists deviations', async () => {
		const django = await startDjango({ flaky: true, retryAfter: 0, noChallenge: true });
		const env = { MAILCTL_TOKEN: django.token };
		const words = ['--full', '--send-to', 'sink@example.com', '--from', django.sender, '-o', 'json'];
		const { code, stdout } = await smoke(django.baseUrl, words, { env });
		await django.stop();
		const report: Report = JSON.parse(stdout);
		expect({ code, counts: report.counts }).toMatchObject({ code: 0, counts: { failed: 0, leftovers: 0 } });
		expect([...new Set(report.deviations.map(({ check }) => check))]).toEqual([
			'auth.wrong',
			'auth.none',
			'connection.slash',
			'connection.unknown',
			'subscribers.unique',
			'webhooks.replace',
			'report.shape',
		]);
	});
});

interface Defect {
	name: string;
	words: readonly string[];
	tamper: Tamper;
	check: string;
	says: RegExp;
}

const isGet = (path: RegExp) => (passing: Passing) => passing.method === 'GET' && path.test(passing.path);
const object = (value: unknown) => value as Record<string, unknown>; // these paths answer objects

function changing(
	picks: (passing: Passing) => boolean,
	change: (body: Record<string, unknown>, passing: Passing) => object,
): Tamper {
	return async (passing, ask) => {
		const answered = await ask(passing);
		if (!picks(passing) || answered.status >= 300) return answered;
		return { ...answered, body: change(structuredClone(object(answered.body)), passing) };
	};
}

function answering(picks: (passing: Passing) => boolean, answered: Partial<Answered>): Tamper {
	return async (passing, ask) =>
		picks(passing)
			? { status: 200, headers: { 'content-type': 'application/json' }, body: {}, ...answered }
			: ask(passing);
}

function sending(picks: (passing: Passing) => boolean, change: (passing: Passing) => Passing): Tamper {
	return (passing, ask) => ask(picks(passing) ? change(passing) : passing);
}

const html = { headers: { 'content-type': 'text/html' }, body: '<h1>It works</h1>' };
const pageOf = (path: string) => isGet(new RegExp(`^${path}(\\?|$)`));
const method = (name: string, path: RegExp) => (passing: Passing) =>
	passing.method === name && path.test(passing.path);
const firstOf = (body: Record<string, unknown>) => object((body['results'] as unknown[])[0]);

const defects: readonly Defect[] = [
	{
		name: 'a count that is a text',
		words: ['--only', 'lists'],
		tamper: changing(pageOf('/sub/lists/'), (body) => {
			firstOf(body)['active_subscribers_count'] = '3';
			return body;
		}),
		check: 'lists.page',
		says: /list 1: active_subscribers_count is "\d+", not a count/,
	},
	{
		name: 'a second page whose next link names itself',
		words: ['--only', 'lists'],
		tamper: changing(isGet(/[?&]page=2/), (body, { path }) => ({ ...body, next: `http://inside${path}` })),
		check: 'lists.paging',
		says: /the next link of page 2 leads to page 2/,
	},
	{
		name: 'a webhook without a type that is accepted',
		words: ['--full', '--only', 'webhooks'],
		tamper: sending(
			(passing) => passing.method === 'POST' && object(passing.body)['type'] === undefined,
			(passing) => ({ ...passing, body: { ...object(passing.body), type: 'OPENED' } }),
		),
		check: 'webhooks.requires-type',
		says: /a webhook without a type is accepted/,
	},
	{
		name: 'an unknown id that is found',
		words: ['--only', 'fields'],
		tamper: answering(isGet(/fields\/2147483647/), { body: { id: 1 } }),
		check: 'fields.unknown',
		says: /an unknown field is accepted/,
	},
	{
		name: 'an error page in HTML',
		words: ['--only', 'fields'],
		tamper: answering(pageOf('/sub/fields/'), { ...html, status: 500 }),
		check: 'fields.page',
		says: /GET \/sub\/fields\/ answered 500, not 200: <h1>It works<\/h1>/,
	},
	{
		name: 'a token that is not checked',
		words: ['--only', 'auth'],
		tamper: sending(
			({ token }) => token !== null,
			(passing) => ({ ...passing, token: server.token }),
		),
		check: 'auth.wrong',
		says: /a wrong token is accepted/,
	},
	{
		name: 'answers to requests without a token',
		words: ['--only', 'auth'],
		tamper: sending(
			({ token }) => token === null,
			(passing) => ({ ...passing, token: server.token }),
		),
		check: 'auth.none',
		says: /without a token is accepted/,
	},
	{
		name: 'dates that are ignored',
		words: ['--only', 'report'],
		tamper: sending(isGet(/date_from/), (passing) => ({ ...passing, path: '/stat/reports/events-report/' })),
		check: 'report.dates',
		says: /is outside the requested days/,
	},
	{
		name: 'a filter that is ignored',
		words: ['--only', 'subscribers'],
		tamper: sending(isGet(/email__exact/), (passing) => ({
			...passing,
			path: passing.path.replace('email__exact', 'email'),
		})),
		check: 'subscribers.filters',
		says: /email__exact returns subscriber 2, which does not match/,
	},
	{
		name: 'a stored value that differs from the answer',
		words: ['--full', '--only', 'lists'],
		tamper: changing(isGet(/lists\/\d+\/$/), (body) => ({ ...body, email_reason: 'another' })),
		check: 'lists.read',
		says: /read again: email_reason is "another", not "a check of this deployment"/,
	},
	{
		name: 'a PATCH that clears a field it does not name',
		words: ['--full', '--only', 'subscribers'],
		tamper: sending(method('PATCH', /subscribers\/\d+\/$/), (passing) => ({
			...passing,
			body: { ...object(passing.body), name: '' },
		})),
		check: 'subscribers.patch',
		says: /after PATCH: name is "", not "Smoke One"/,
	},
	{
		name: 'a message missing from the count',
		words: ['--only', 'send', '--send-to', 'sink@example.com', '--from', 'news@example.com'],
		tamper: changing(method('POST', /message\/send/), (body) => ({ ...body, messages_created: 0 })),
		check: 'send.message',
		says: /messages_created is 0, but the answer has 1 messages/,
	},
];

describe('smoke on a server with one defect', () => {
	it.each(defects)('reports the defect: $name', async ({ words, tamper, check, says }) => {
		const before = await holdings();
		const proxy = await startTampering(server.baseUrl, tamper);
		const { code, stdout } = await smoke(proxy.baseUrl, [...words, '-o', 'json']);
		await proxy.close();
		const report: Report = JSON.parse(stdout);
		const found = report.checks.find(({ id }) => id === check);
		expect({ code, outcome: found?.outcome, left: report.leftovers }).toEqual({
			code: 11,
			outcome: 'fail',
			left: [],
		});
		expect(found?.detail).toMatch(says);
		expect(await holdings()).toEqual(before);
	});

	it('reports a DELETE that deletes nothing, and lists the remaining records', async () => {
		const proxy = await startTampering(
			server.baseUrl,
			answering(({ method: name }) => name === 'DELETE', { status: 204, body: undefined }),
		);
		const { code, stdout, stderr } = await smoke(proxy.baseUrl, ['--full', '--only', 'fields', '-o', 'json']);
		await proxy.close();
		const report: Report = JSON.parse(stdout);
		expect(report.checks.filter(({ outcome }) => outcome === 'fail').map(({ id }) => id)).toEqual([
			'fields.delete',
			'cleanup.all',
		]);
		expect(report.leftovers).toEqual([expect.objectContaining({ kind: 'field' })]);
		expect({ code, error: JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '').error }).toMatchObject({
			code: 11,
			error: { code: 'smoke_failed', exit_code: 11, hint: expect.stringContaining('--cleanup-only') },
		});
		expect((await smoke(server.baseUrl, ['--cleanup-only'])).code).toBe(0);
	});

	it.each([
		['the page of lists', pageOf('/sub/lists/'), 0],
		['all answers about lists', isGet(/^\/sub\/lists\/(\d+\/)?(\?|$)/), 1],
	])('deletes a list only if it can read the list’s name (missing in %s)', async (_, picks, remaining) => {
		const before = await holdings();
		const unnamed = (one: object) => ({ ...one, name: null });
		const tamper = changing(picks, (body) =>
			'results' in body ? { ...body, results: (body['results'] as object[]).map(unnamed) } : unnamed(body),
		);
		const proxy = await startTampering(server.baseUrl, tamper);
		const words = ['--full', '--only', 'subscribers', '-o', 'json'];
		const { stdout, stderr } = await smoke(proxy.baseUrl, words).finally(() => proxy.close());
		const { leftovers }: Report = JSON.parse(stdout);
		const why = 'its name cannot be read, so it was kept';
		const name = expect.stringMatching(/-subscribers$/);
		expect(leftovers).toEqual(Array(remaining).fill({ kind: 'list', id: expect.any(Number), name, why }));
		if (remaining > 0) expect(stderr).toContain('"hint":"use the id to delete what is left behind"');
		if (remaining > 0) await smoke(server.baseUrl, ['--cleanup-only']);
		expect(await holdings()).toEqual(before);
	});

	it('deletes a record whose creation was answered with 408', async () => {
		const before = await holdings();
		const proxy = await startTampering(server.baseUrl, async (passing, ask) => {
			const answered = await ask(passing);
			const isCreation = passing.method === 'POST' && passing.path === '/sub/fields/';
			return isCreation ? { ...answered, status: 408, body: { detail: 'late' } } : answered;
		});
		await smoke(proxy.baseUrl, ['--full', '--only', 'fields']).finally(() => proxy.close());
		expect(await holdings()).toEqual(before);
	});

	it('leaves an existing record unchanged if a creation returns its id', async () => {
		const before = await holdings();
		const proxy = await startTampering(
			server.baseUrl,
			changing(method('POST', /^\/sub\/lists\/$/), (body) => ({ ...body, id: 1 })),
		);
		const words = ['--full', '--only', 'lists', '--only', 'subscribers', '-o', 'json'];
		const { code, stdout } = await smoke(proxy.baseUrl, words);
		await proxy.close();
		const { checks }: Report = JSON.parse(stdout);
		expect({ code, detail: checks.find(({ id }) => id === 'lists.create')?.detail }).toEqual({
			code: 11,
			detail: 'the service says that list 1 is new, but its name is "News"',
		});
		expect((await smoke(server.baseUrl, ['--cleanup-only'])).code).toBe(0);
		expect(await holdings()).toEqual(before);
	});

	it.each([
		{
			name: 'an extra key',
			change: (body: Record<string, unknown>) => {
				eachField(body)['colour'] = 'red';
				return body;
			},
			says: 'field 1: colour is not in the service document',
		},
		{
			name: 'times in another format',
			change: (body: Record<string, unknown>) => {
				eachField(body)['date_created'] = '2026-11-21T10:00:00Z';
				return body;
			},
			says: 'field 1: date_created is "2026-11-21T10:00:00Z", not <YYYY-MM-DDTHH:MM:SS.ffffff>',
		},
	])('passes, and lists a deviation: $name', async ({ change, says }) => {
		const tamper = changing(isGet(/^\/sub\/fields\//), change);
		const proxy = await startTampering(server.baseUrl, tamper);
		const { code, stdout } = await smoke(proxy.baseUrl, ['--only', 'fields', '-o', 'json']);
		await proxy.close();
		const { deviations }: Report = JSON.parse(stdout);
		expect({ code, text: deviations[0]?.text }).toEqual({ code: 0, text: says });
	});
});

function eachField(body: Record<string, unknown>): Record<string, unknown> {
	return 'results' in body ? firstOf(body) : body;
}

/** Forwards requests. Calls `tell` when a request that `picks` selects has been answered. */
function watching(picks: (passing: Passing) => boolean, tell: () => void): Tamper {
	return async (passing, ask) => {
		const answered = await ask(passing);
		if (picks(passing)) tell();
		return answered;
	};
}

describe('smoke that is interrupted', () => {
	const isFieldPatch = method('PATCH', /^\/sub\/fields\//);

	it.each([
		['SIGINT', 130],
		['SIGTERM', 143],
	] as const)('deletes its records on %s, and still reports', async (signal, expected) => {
		const before = await holdings();
		const stop = new AbortController();
		const proxy = await startTampering(
			server.baseUrl,
			watching(isFieldPatch, () => stop.abort(new Interrupted(signal))),
		);
		const { code, stdout } = await smoke(proxy.baseUrl, ['--full', '-o', 'json'], {
			interrupts: stop.signal,
		});
		await proxy.close();
		const report: Report = JSON.parse(stdout);
		expect(code).toBe(expected);
		expect(report.checks.find(({ id }) => id === 'report.shape')).toMatchObject({ outcome: 'skip' });
		expect(report.checks.at(-1)).toMatchObject({ id: 'cleanup.all', outcome: 'pass' });
		expect(await holdings()).toEqual(before);
	});

	it('ends with 11 if deletions are not answered, and lists what remains', async () => {
		const before = await holdings();
		const stop = new AbortController();
		const proxy = await startTampering(server.baseUrl, async (passing, ask) => {
			if (passing.method === 'DELETE') return new Promise<never>(() => {});
			const answered = await ask(passing);
			if (isFieldPatch(passing)) stop.abort(new Interrupted('SIGINT'));
			return answered;
		});
		const words = ['--full', '--only', 'fields', '-o', 'json'];
		const { code, stdout } = await smoke(proxy.baseUrl, words, { interrupts: stop.signal });
		await proxy.close();
		const { leftovers }: Report = JSON.parse(stdout);
		expect({ code, leftovers }).toEqual({
			code: 11,
			leftovers: [expect.objectContaining({ kind: 'field', name: expect.stringMatching(/^mailctl_smoke_/) })],
		});
		expect((await smoke(server.baseUrl, ['--cleanup-only'])).code).toBe(0);
		expect(await holdings()).toEqual(before);
	});

	it('leaves records behind if it is killed, and --cleanup-only deletes them', async () => {
		const before = await holdings();
		let tell: () => void = () => {};
		const reached = new Promise<void>((resolve) => {
			tell = resolve;
		});
		const proxy = await startTampering(server.baseUrl, watching(isFieldPatch, tell));
		const child = startProgram(['--base-url', proxy.baseUrl, 'smoke', '--full'], {
			HOME: project.folder,
			MAILCTL_TOKEN: server.token,
		});
		const ended = once(child, 'exit');
		await Promise.race([reached, ended]);
		child.kill('SIGKILL');
		await ended;
		await proxy.close();
		expect(await holdings()).not.toEqual(before);

		const dry = await smoke(server.baseUrl, ['--cleanup-only', '--dry-run']);
		expect(dry.stdout).toMatch(/^list \d+ "mailctl-smoke-.*\nfield \d+ "mailctl_smoke_/);
		expect(await holdings()).not.toEqual(before);
		const { code, stdout } = await smoke(server.baseUrl, ['--cleanup-only']);
		expect({ code, stdout }).toEqual({
			code: 0,
			stdout: expect.stringMatching(/list \d+ "mailctl-smoke-.*is deleted/),
		});
		expect(await holdings()).toEqual(before);
	});
});
