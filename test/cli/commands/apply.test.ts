// `apply` and `diff`: a second run changes nothing, and neither does a bad file.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cli } from '../../support/cli.js';
import { djangoMissing, startDjango } from '../../support/drf.js';
import { eventually } from '../../support/eventually.js';
import { makeProject } from '../../support/project.js';
import { startServer } from '../../support/running-server.js';

const noDjango = await djangoMissing();

const plain = `lists:
  - name: Monthly news
    email_reason: You signed up
fields:
  - { variable: city, name: City }
webhooks:
  - type: OPENED
    url: https://hooks.example.com/in
    login: me
    password: \${HOOK}
`;
const ours = `senders: [News@Example.com]
templates:
  - name: Welcome
    html_body_file: welcome.html
`;
const env = { HOOK: 'very secret' };

async function place() {
	const project = await makeProject();
	await project.file('welcome.html', '<p>Hi</p>\n');
	const write = (text: string) => project.file('mail.yaml', text);
	return { ...project, write };
}

type Call = (words: readonly string[]) => Promise<{ code: number; stdout: string; stderr: string }>;

/** Expects that `apply` creates everything, then changes nothing, and then updates, creates and prunes. */
async function expectRoad(call: Call, write: (text: string) => Promise<string>, text: string, count: number) {
	const file = await write(text);
	const rows = (stdout: string): { action: string; name: string }[] => JSON.parse(stdout);
	const planned = await call(['diff', '-f', file, '-o', 'json']);
	expect({ code: planned.code, stderr: planned.stderr }).toEqual({ code: 11, stderr: '' });
	expect(rows(planned.stdout).map(({ action }) => action)).toEqual(Array(count).fill('create'));
	expect(planned.stdout).not.toContain(env.HOOK);
	expect(await call(['apply', '-f', file, '-n'])).toMatchObject({ code: 0 });
	expect((await call(['diff', '-f', file])).code).toBe(11);
	const made = await call(['apply', '-f', file, '-o', 'json']);
	expect({ code: made.code, rows: rows(made.stdout).length }).toEqual({ code: 0, rows: count });
	expect(made.stdout + made.stderr).not.toContain(env.HOOK);
	expect(await call(['diff', '-f', file])).toMatchObject({ code: 0, stdout: '' });
	expect(await call(['apply', '-f', file])).toMatchObject({ code: 0, stdout: '' });
	await write(text.replace('You signed up', 'You asked for it').replace('city', 'town'));
	const words = ['-f', file, '--prune'];
	const wanted = rows((await call(['diff', ...words, '-o', 'json'])).stdout);
	expect(wanted.map(({ action, name }) => `${action} ${name}`)).toEqual([
		'create town',
		'update Monthly news',
		'delete city',
	]);
	expect(await call(['apply', ...words, '-y'])).toMatchObject({
		code: 2,
		stderr: expect.stringContaining('--confirm prune'),
	});
	expect(await call(['apply', ...words, '--confirm', 'prune'])).toMatchObject({ code: 0 });
	expect((await call(['diff', ...words])).code).toBe(0);
}

describe('mailctl apply', () => {
	it('makes the changes that diff shows, after which the database matches the file', async () => {
		const { run, write } = await place();
		await run(['senders', 'remove', 'news@example.com', '-y']);
		const settings = 'settings: { time_zone: Europe/Oslo }\n';
		await expectRoad((words) => run(words, { env }), write, settings + plain + ours, 6);
		expect(await run(['engine', 'settings', 'get', 'time_zone'])).toMatchObject({ stdout: 'Europe/Oslo\n' });
	});

	it('makes the changes that diff shows, after which the mailctl server matches the file', async () => {
		const { db, run, write } = await place();
		await run(['senders', 'remove', 'news@example.com', '-y']);
		const server = await startServer(db, ['--no-worker']);
		onTestFinished(async () => void (await server.stop()));
		const call: Call = (words) =>
			cli(['--base-url', server.baseUrl, ...words], { env: { ...env, MAILCTL_TOKEN: server.token } });
		await expectRoad(call, write, plain + ours, 5);
		const file = await write('settings: { time_zone: UTC }\n');
		expect(await call(['apply', '-f', file])).toMatchObject({ code: 2 });
	});

	it.skipIf(noDjango !== null)(
		'makes the changes that diff shows on another service, but rejects templates',
		async () => {
			const { write } = await place();
			const django = await startDjango();
			onTestFinished(() => django.stop());
			const call: Call = (words) =>
				cli(['--base-url', django.baseUrl, ...words], { env: { ...env, MAILCTL_TOKEN: django.token } });
			const file = await write(ours + plain);
			const { code, stderr } = await call(['apply', '-f', file]);
			expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('templates') });
			expect(await call(['lists', 'list', '-o', 'name'])).toMatchObject({ stdout: '' });
			await expectRoad(call, write, plain, 3);
		},
	);

	it('needs --confirm prune to delete lists, and prints how many subscribers a list has', async () => {
		const { run, json, file } = await makeProject();
		for (const name of ['Readers', 'Nobody'])
			await json(['lists', 'create', '--name', name, '--email-reason', 'r']);
		await json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
		const path = await file('mail.yaml', 'lists: []\n');
		expect(await run(['apply', '-f', path, '--prune'])).toMatchObject({
			code: 2,
			stderr:
				'error: this will delete the list "Readers" with 1 subscriber, the list "Nobody"\n' +
				'hint: add --confirm prune to agree\n',
		});
		const more = await file(
			'more.yaml',
			'lists: [{name: New, email_reason: r}]\nfields: [{variable: city, name: City}]\n',
		);
		expect((await run(['apply', '-f', more, '--prune'])).stderr).toMatch(
			/^error: this will delete the list "Readers" with 1 subscriber, the list "Nobody"; and create 1 field and 1 list\n/,
		);
		expect(await json(['lists', 'list'])).toHaveLength(2);
		const { stderr } = await run(['apply', '-f', more, '--prune', '--confirm', 'prune']);
		expect(stderr).toBe('created 1 field and 1 list, deleted 2 lists\n');
	});

	it('sets and clears the public name of a list', async () => {
		const { run, write } = await place();
		const list = (more: string) =>
			`lists:\n  - {name: A, email_reason: r${more}}\n  - {name: B, email_reason: r}\n`;
		const file = await write(list(', public_name: News'));
		const shown = async () => (await run(['lists', 'get', 'A', '--fields', 'public_name'])).stdout;
		expect(await run(['apply', '-f', file])).toMatchObject({ code: 0 });
		expect(await shown()).toBe('News\n');
		expect(await run(['diff', '-f', file])).toMatchObject({ code: 0 });
		await write(list(''));
		expect(await run(['diff', '-f', file])).toMatchObject({ code: 0 });
		for (const empty of ["''", 'null']) {
			await write(list(`, public_name: ${empty}`));
			expect(await run(['apply', '-f', file, '-o', 'json'])).toMatchObject({ code: 0 });
			expect(await run(['diff', '-f', file])).toMatchObject({ code: 0, stdout: '' });
			expect(await shown()).toBe('\n');
			await run(['lists', 'update', 'A', '--public-name', 'Again']);
		}
		await write(list(', public_name: Nyheter'));
		const { stdout } = await run(['diff', '-f', file, '-o', 'json']);
		expect(JSON.parse(stdout)).toEqual([
			{
				action: 'update',
				kind: 'lists',
				name: 'A',
				changes: { public_name: { from: 'Again', to: 'Nyheter' } },
			},
		]);
	});

	it.each([
		['lsts: []', ': unknown key "lsts": did you mean lists?'],
		[
			'lists:\n  - name: A\n    email_raeson: x',
			': lists[0]: unknown key "email_raeson": did you mean email_reason?',
		],
		['lists:\n  - name: A', ': lists[0]: email_reason is missing'],
		['lists:\n  - name: A\n    email_reason: [x]', ': lists[0].email_reason: must be text'],
		['lists:\n  - {name: B, email_reason: y}\n  - {name: B, email_reason: y}', ': lists[1]: "B" is already'],
		['lists: {name: A}', ': lists: must be a list'],
		['webhooks: [{url: x, type: OPEND}]', 'webhooks[0].type: must be one of OPENED'],
		[
			`webhooks: [{url: "https://x.example", type: OPENED, login: a, password: "$${'{NOT_THERE}'}"}]`,
			'the variable NOT_THERE is not set',
		],
		['webhooks: [{url: "https://x.example", type: OPENED, login: a}]', 'a login needs a password'],
		['templates: [{name: T, text_body_file: none.txt}]', 'none.txt: no such file'],
		['settings: {colour: red}', 'unknown setting "colour"'],
		['[1, 2]', 'must have keys with values'],
		['lists:\n\t- name: A', ':2:1: Tabs are not allowed as indentation'],
	])('rejects the file %j and prints the position of the error', async (text, words) => {
		const { run, write } = await place();
		const file = await write(`${text}\n`);
		const { code, stderr } = await run(['apply', '-f', file, '-o', 'json']);
		expect({ code, stderr: stderr.slice(0, 2_000) }).toMatchObject({
			code: 2,
			stderr: expect.stringContaining(JSON.stringify(words).slice(1, -1)),
		});
		expect(await run(['lists', 'list', '-o', 'name'])).toMatchObject({ stdout: '' });
	});

	it('rejects an invalid setting before it changes anything', async () => {
		const { run, write } = await place();
		const text = 'lists: [{name: A, email_reason: r}]\nsettings: {page_color: 0b6e4f}\n';
		expect(await run(['apply', '-f', await write(text)])).toMatchObject({
			code: 5,
			stderr: 'error: page_color: Must be #rrggbb, such as #1d4ed8. (0b6e4f)\n',
		});
		expect(await run(['lists', 'list', '-o', 'name'])).toMatchObject({ stdout: '' });
	});

	it('stops at a rejected change, and a second run with a corrected file makes only this change', async () => {
		const { run, write } = await place();
		const file = await write('fields: [{variable: city, name: C}, {variable: 1st, name: F}]\n');
		const { code, stderr } = await run(['apply', '-f', file]);
		expect({ code, stderr }).toMatchObject({
			code: 5,
			stderr: expect.stringContaining('stopped after 1 of 2'),
		});
		await write('fields: [{variable: city, name: C}, {variable: first, name: F}]\n');
		expect(await run(['apply', '-f', file, '-o', 'name'])).toMatchObject({ code: 0, stdout: 'first\n' });
	});
});

it('apply exits with an error while another apply runs on the same target', async () => {
	const project = await place();
	const file = await project.write(plain);
	const stdin = new PassThrough();
	const first = project.run(['apply', '-f', '-', '--yes'], { env, stdin });
	const state = join(project.folder, '.local/state/mailctl/imports');
	await eventually(async () => expect((await readdir(state)).join()).toContain('.pid'));
	const second = await project.run(['apply', '-f', file, '--yes'], { env });
	expect(second).toMatchObject({
		code: 2,
		stderr: expect.stringMatching(/working on an apply to .*\nhint: wait until/),
	});
	stdin.end(plain);
	expect(await first).toMatchObject({ code: 0 });
	expect(await project.json(['lists', 'list'])).toHaveLength(1);
});
