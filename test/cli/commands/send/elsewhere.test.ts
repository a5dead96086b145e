// Another service composes its messages itself, so a dry run shows only the request to it.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { type Foreign, startForeign } from '../../../support/foreign.js';
import { makeProject, type Project } from '../../../support/project.js';

let foreign: Foreign;
let project: Project;
beforeEach(async () => {
	foreign = await startForeign();
	project = await makeProject();
});
afterEach(() => foreign.close());

const run = (words: readonly string[]) =>
	cli(['--base-url', foreign.baseUrl, ...words], { env: { MAILCTL_TOKEN: 't', HOME: project.folder } });
const shared = { from: 'news@example.com', subject: 'In #city#', text_body: 'Hi #name#' };
const mail = ['--from', shared.from, '--subject', shared.subject, '--text', shared.text_body];

/** Returns the command of each way to send, and its first request. */
async function sends() {
	const table = await project.file('people.csv', 'email,name,city,age\nann@example.com,Ann,Oslo,7\n');
	const batch = await project.file(
		'b.ndjson',
		`${JSON.stringify({ ...shared, text_body: 'T', subject: 'S', to: ['ann@example.com'] })}\n`,
	);
	const context = { name: 'Ann', city: 'Oslo' };
	return [
		{
			words: ['send', ...mail, '--to', 'ann@example.com', '--context', 'city=Oslo'],
			send: { ...shared, type: 'TRANSACTIONAL', to: ['ann@example.com'], context: { city: 'Oslo' } },
		},
		{
			words: ['send', ...mail, '--list', '1'],
			send: { ...shared, type: 'BULK', to: ['ann@example.com'], context },
		},
		{
			words: ['send', ...mail, '--csv', table],
			send: { ...shared, type: 'TRANSACTIONAL', to: ['ann@example.com'], context },
		},
		{
			words: ['send', '--batch', batch],
			send: { ...shared, text_body: 'T', subject: 'S', to: ['ann@example.com'] },
		},
	];
}

describe('a send through another service', () => {
	it('rejects a variable with a default, because only mailctl fills in defaults', async () => {
		const table = await project.file('d.csv', 'email,name\nann@example.com,\n');
		const text = ['--from', shared.from, '--subject', 'S', '--text', 'Hi #name|friend#'];
		const recipients = [
			['--to', 'ann@example.com'],
			['--list', '1'],
			['--csv', table],
		];
		for (const to of recipients) {
			for (const more of [['-n'], to[0] === '--to' ? [] : ['--yes', '--expect-count', '1']]) {
				const { code, stderr } = await run(['send', ...text, ...to, ...more]);
				expect({ code, stderr }).toMatchObject({
					code: 2,
					stderr: expect.stringContaining('#name|friend#: this service does not support defaults'),
				});
			}
		}
		const request = { ...shared, subject: 'S', text_body: 'Hi #name|friend#', to: ['ann@example.com'] };
		const batch = await project.file('d.ndjson', `${JSON.stringify(request)}\n`);
		const { code, stderr } = await run(['send', '--batch', batch, '--yes', '--expect-count', '1']);
		expect({ code, stderr }).toMatchObject({
			code: 2,
			stderr: expect.stringContaining(
				'text_body: this service does not support default values of variables.',
			),
		});
		expect(foreign.writes).toEqual([]);
	});

	it('shows the API request in a dry run, but no message', async () => {
		for (const { words, send } of await sends()) {
			const { code, stdout } = await run([...words, '-n', '-o', 'json']);
			const plan = JSON.parse(stdout);
			expect({ code, plan }).toMatchObject({ code: 0, plan: { dry_run: true } });
			expect(plan['send']).toEqual(send);
			expect(plan).not.toHaveProperty('message');
			const seen = await run([...words, '-n', '-o', 'table']);
			expect(JSON.parse(seen.stdout)).toEqual(send);
			expect(seen.stderr).toContain(' with this request\n');
		}
		expect(foreign.writes).toEqual([]);
	});

	it('sets disable_tracking in the request for --track off', async () => {
		for (const { words, send } of await sends()) {
			const { code, stdout } = await run([...words, '--track', 'off', '-n', '-o', 'json']);
			expect({ code, send: JSON.parse(stdout)['send'] }).toEqual({
				code: 0,
				send: { ...send, disable_tracking: true },
			});
		}
	});

	it('rejects --preview and --eml', async () => {
		for (const { words } of await sends())
			for (const option of [
				['--preview', 'text'],
				['--preview', 'html'],
				['--eml', '-'],
				['--eml', '-', '-n'],
			]) {
				const { code, stdout, stderr } = await run([...words, ...option]);
				expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
				expect(stderr).toMatch(
					/^error: this service renders its messages itself, so --(preview|eml) cannot show them\nhint: --dry-run shows the request\n$/,
				);
			}
		expect(foreign.writes).toEqual([]);
	});
});
