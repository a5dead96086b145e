import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Suppressions } from '../../../src/api/suppressions.js';
import { connect } from '../../../src/cli/connect.js';
import type { Connect } from '../../../src/cli/frame/connection.js';
import { Interrupted } from '../../../src/cli/frame/errors.js';
import { errorOf, makeProject, type Project, said } from '../../support/project.js';

const ann = 'ann@example.com';
const bob = 'bob@example.com';

describe('mailctl suppressions', () => {
	let project: Project;
	beforeEach(async () => {
		project = await makeProject();
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		await project.json(['subscribers', 'create', '-l', '1', '--email', ann]);
	});
	const list = (...more: string[]) => project.json(['suppressions', 'list', ...more]);
	const tsv = async (...more: string[]) =>
		(await project.run(['suppressions', 'list', '--fields', 'email,reason,source', ...more])).stdout;

	describe('with --list', () => {
		beforeEach(async () => {
			await project.json(['lists', 'create', '--name', 'Others', '--email-reason', 'r']);
			await project.json(['subscribers', 'create', '-l', 'Others', '--email', ann]);
		});
		const leave = ['suppressions', 'add', ann, '--reason', 'UNSUBSCRIBED', '--list'];
		const active = async () =>
			((await project.json(['subscribers', 'find', ann])) as { is_active: boolean }[]).map(
				({ is_active }) => is_active,
			);

		it('adds, lists and removes suppressions of one list', async () => {
			expect(await project.json([...leave, 'Readers'])).toMatchObject({ reason: 'UNSUBSCRIBED', list_id: 1 });
			expect(await active()).toEqual([false, true]);
			await project.json([...leave, '2']);
			const { stdout } = await project.run(['suppressions', 'list', '--fields', 'email,reason,list_id']);
			expect(stdout).toBe(`${ann}\tUNSUBSCRIBED\t1\n${ann}\tUNSUBSCRIBED\t2\n`);
			expect(await list('--list', 'Others')).toMatchObject([{ list_id: 2 }]);
			const removed = ['suppressions', 'remove', ann, '--list', 'Others', '--yes'];
			expect(await project.json(removed)).toMatchObject({ suppressions: 1, inactive_subscribers: 1 });
			expect(await list()).toMatchObject([{ list_id: 1 }]);
			expect((await project.run(removed)).code).toBe(3);
		});

		it('accepts only the reason UNSUBSCRIBED and an existing list', async () => {
			const { code, stderr } = await project.run(['suppressions', 'add', ann, '--list', '1']);
			const said = 'error: list_id: Only UNSUBSCRIBED can apply to a single list, not MANUAL. (1)\n';
			expect([code, stderr]).toEqual([5, `${said}hint: give --reason UNSUBSCRIBED\n`]);
			expect((await project.run([...leave, 'Nobody'])).code).toBe(3);
		});

		it('restores the suppressions of a list from an exported file', async () => {
			await project.json([...leave, 'Readers']);
			await project.json(['suppressions', 'add', bob]);
			const file = join(project.folder, 'stopped.csv');
			await project.run(['suppressions', 'export', file]);
			const before = await list();
			expect(await readFile(file, 'utf8')).toMatch(
				/^email,reason,list_id,source,date_created,expires_at\r?\n/,
			);
			await project.run(['suppressions', 'remove', ann, bob, '--yes']);
			await project.run(['suppressions', 'import', file]);
			expect(await list()).toEqual(before);
			expect(await active()).toEqual([false, true]);
		});
	});

	describe('add', () => {
		it('prints the suppression, and deactivates the subscriber with the reason MANUAL', async () => {
			const made = await project.json(['suppressions', 'add', 'Ann@Example.com']);
			const expected = {
				...{ email: ann, reason: 'MANUAL', list_id: null, source: 'API' },
				...{ date_created: expect.any(String), expires_at: null },
			};
			expect(made).toEqual(expected);
			expect(await list()).toEqual([expected]);
			expect(await project.json(['subscribers', 'get', ann, '-l', '1'])).toMatchObject({
				is_active: false,
				disable_reason: 'MANUAL',
			});
			const { stderr } = await project.run(['subscribers', 'activate', ann, '-l', '1']);
			expect(stderr).toContain('This address is suppressed (MANUAL)');
			expect(stderr).toContain(`hint: mailctl --db ${project.db} suppressions remove ADDRESS`);
		});

		it('prints an array with each address once, including addresses from standard input', async () => {
			const stdin = `${ann}\n\n ${bob}\nANN@example.com\n`;
			const made = await project.json(['suppressions', 'add', '-', '--reason', 'COMPLAINED'], { stdin });
			expect(made).toMatchObject([{ email: ann }, { email: bob, reason: 'COMPLAINED' }]);
			expect(await project.json(['suppressions', 'add', ann, bob])).toHaveLength(2);
			const quiet = await project.run(['suppressions', 'add', ann, bob, '-q']);
			expect(quiet.stdout).toBe(`${ann}\n${bob}\n`);
		});

		it.each([
			['01.02.2030', '2030-02-01T00:00:00.000000'],
			['12h', '2026-01-02T00:00:00.000000'],
			['Tomorrow', '2026-01-02T00:00:00.000000'],
		])('accepts the expiry %s', async (text, expires_at) => {
			const argv = ['suppressions', 'add', ann, '--expires', text, '--now', '2026-01-01T12:00:00Z'];
			expect(await project.json(argv)).toMatchObject({ expires_at });
		});

		it.each([
			['next week', 'not a date or duration'],
			['yesterday', 'in the past'],
		])('prints the valid forms of an expiry if it rejects %s', async (text, why) => {
			const { code, stderr } = await project.run(['suppressions', 'add', ann, '--expires', text]);
			expect({ code, said: stderr.split('\n')[0] }).toEqual({
				code: 2,
				said: `error: --expires: "${text}" is ${why}`,
			});
			expect(stderr).toContain('valid: 30d, 12h, tomorrow, 2030-01-31, 31.01.2030, 2030-01-31T18:00:00');
		});

		it('continues after it rejects an address, and exits with 9', async () => {
			await project.json(['subscribers', 'erase', ann, '--confirm', ann]);
			const { code, stdout, stderr } = await project.run(['suppressions', 'add', ann, bob, '-o', 'json']);
			expect({ code, made: JSON.parse(stdout) }).toMatchObject({ code: 9, made: [{ email: bob }] });
			expect(said({ stderr })).toEqual([{ warning: expect.stringMatching(`^${ann}: `) }]);
		});

		it('with --expires stops mail until the given day, but keeps the subscriber active', async () => {
			const on = (day: string, ...argv: string[]) =>
				project.json([...argv, '--now', `2026-01-${day}T12:00:00Z`]);
			await on('01', 'suppressions', 'add', ann, '--reason', 'HARDBOUNCED', '--expires', '2026-01-10');
			expect(await on('01', 'subscribers', 'list', '-l', '1', '--active')).toHaveLength(1);
			const mail = ['--from', 'news@example.com', '--to', ann, '--subject', 'S', '--text', 'T'];
			const send = ['send', ...mail, '--no-wait'];
			const passedOver = [...send, '--now', '2026-01-09T12:00:00Z'];
			expect(await project.json(passedOver, { code: 9 })).toMatchObject({ messages_created: 0 });
			expect(await on('10', ...send)).toMatchObject({ messages_created: 1 });
			expect(await on('10', 'suppressions', 'list')).toEqual([]);
		});
	});

	describe('remove', () => {
		beforeEach(async () => {
			await project.json(['suppressions', 'add', ann, '--reason', 'HARDBOUNCED']);
			await project.json(['suppressions', 'add', ann]);
		});

		it('asks for confirmation, removes one reason or all, and prints who stays inactive', async () => {
			expect((await project.run(['suppressions', 'remove', ann])).code).toBe(2);
			const one = ['suppressions', 'remove', ann, '--reason', 'MANUAL', '-y'];
			expect(await project.json(one)).toEqual({ deleted: [ann], suppressions: 1, inactive_subscribers: 1 });
			expect((await project.run(one)).code).toBe(3);
			const { code, stderr } = await project.run(['suppressions', 'remove', ann, '-y'], { columns: 100 });
			expect(code).toBe(0);
			expect(stderr).toContain(`lifted the suppression of ${ann}`);
			expect(stderr).toContain('1 subscriber stays inactive:');
			expect(stderr).toContain(`subscribers activate ${ann} --list LIST`);
			expect(await project.json(['subscribers', 'activate', ann, '-l', '1'])).toMatchObject([
				{ is_active: true },
			]);
		});

		it('continues if an address has no suppression, and exits with 9', async () => {
			const { code, stdout } = await project.run(['suppressions', 'remove', bob, ann, '-y', '-o', 'json']);
			expect({ code, done: JSON.parse(stdout) }).toMatchObject({ code: 9, done: { deleted: [ann] } });
		});
	});

	describe('import', () => {
		const table = [
			'E-Mail,Reason,Expires',
			`${ann},hard-bounced,`,
			`${bob},,2099-01-01`,
			'Bob@Example.com,,2099-01-01',
			'nobody,,',
			'carl@example.com,OTHER,',
			'dora@example.com,,2020-01-01',
			'',
		].join('\n');
		const imported = async (path: string, ...more: string[]) =>
			project.run(['suppressions', 'import', path, ...more, '-o', 'json']);

		it('counts all rows, writes rejected ones to a file, and changes nothing when it runs again', async () => {
			const path = await project.file('stop.csv', table);
			const first = await imported(path);
			expect({ code: first.code, counts: JSON.parse(first.stdout) }).toEqual({
				code: 9,
				counts: { read: 6, created: 2, updated: 0, unchanged: 0, duplicate: 1, rejected: 3 },
			});
			expect(await readFile(`${path}.rejects.csv`, 'utf8')).toBe(
				[
					'E-Mail,Reason,Expires,_line,_code,_error',
					'Bob@Example.com,,2099-01-01,4,duplicate,email: Bob@Example.com is in this file already.',
					'nobody,,,5,invalid,email: Enter a valid email address: it has no @',
					'carl@example.com,OTHER,,6,invalid_choice,"reason: ""OTHER"" is not a valid choice."',
					'dora@example.com,,2020-01-01,7,expired,expires_at: This time is in the past.',
					'',
				].join('\n'),
			);
			expect(await tsv()).toBe(`${ann}\tHARDBOUNCED\tIMPORT\n${bob}\tMANUAL\tIMPORT\n`);
			const again = await imported(path, '--rejects', join(project.folder, 'again.csv'));
			expect(JSON.parse(again.stdout)).toMatchObject({ created: 0, unchanged: 2, duplicate: 1, rejected: 3 });
			const mended = await imported(`${path}.rejects.csv`, '--reason', 'COMPLAINED');
			expect(JSON.parse(mended.stdout)).toMatchObject({ read: 4, duplicate: 1, rejected: 3 });
		});

		it('accepts a second row for an address if the first was rejected or expires sooner', async () => {
			const rows = [
				'email,reason,expires_at,date_created',
				`${ann},MANUAL,2999-12-01,`,
				`${ann},MANUAL,,`,
				`${bob},MANUAL,never,`,
				`${bob},MANUAL,,`,
				`${bob},MANUAL,,`,
				'carl@example.com,MANUAL,,yesterday',
				'carl@example.com,MANUAL,,2026-01-02',
				'carl@example.com,MANUAL,,2026-01-03',
				'',
			];
			const path = await project.file('more.csv', rows.join('\n'));
			const counts = { read: 8, created: 3, updated: 1, unchanged: 0, duplicate: 2, rejected: 2 };
			expect(await project.json(['suppressions', 'import', path, '-n'])).toMatchObject(counts);
			expect(JSON.parse((await imported(path)).stdout)).toEqual(counts);
			expect(await list()).toMatchObject([
				{ email: ann, expires_at: null },
				{ email: bob, expires_at: null },
				{ email: 'carl@example.com', expires_at: null },
			]);
		});

		it.each([
			['stop.csv', `Note,email\nx,${ann}\ny,nobody\n`],
			['stop.ndjson', `{"Note":"x","email":"${ann}"}\n{"Note":"y","email":"nobody"}\n`],
		])('reads the corrected rejects file of %s without --ignore-unknown', async (name, text) => {
			const path = await project.file(name, text);
			const first = await imported(path, '--ignore-unknown');
			expect({ code: first.code, said: said(first) }).toEqual({
				code: 9,
				said: [
					{ note: 'left out: Note' },
					{ hint: `1 rejected row is in ${path}.rejects.csv; correct it and import that file` },
				],
			});
			const rejects = `${path}.rejects.csv`;
			const written = await readFile(rejects, 'utf8');
			expect(written.split('\n').map((line) => line.split(',').at(-1))).toEqual(['Note', 'y', '']);
			await writeFile(rejects, written.replace('nobody', bob));
			const again = await imported(rejects);
			expect({ code: again.code, counts: JSON.parse(again.stdout) }).toMatchObject({
				code: 0,
				counts: { read: 1, created: 1 },
			});
			expect(await list()).toMatchObject([{ email: ann }, { email: bob }]);
		});

		/** Connects to the engine and calls `happens` after each batch; batches are counted from 1. */
		const afterBatch =
			(happens: (batch: number) => void): Connect =>
			async (target, dependencies) => {
				let taken = 0;
				const connection = await connect(target, dependencies);
				const { ext, ...rest } = await connection.api.capabilities();
				const { suppressions } = ext;
				if (suppressions === undefined) throw new Error('the engine has suppressions');
				const watched: Suppressions = {
					...suppressions,
					put: async (...args) => {
						const ack = await suppressions.put(...args);
						taken += 1;
						happens(taken);
						return ack;
					},
				};
				const capabilities = async () => ({ ...rest, ext: { ...ext, suppressions: watched } });
				return { ...connection, api: { ...connection.api, capabilities } };
			};
		const many = (count: number) =>
			['email', 'nobody', ...Array.from({ length: count }, (_, at) => `p${at}@example.com`), ''].join('\n');

		it('finishes the current batch after Ctrl-C, and prints how to continue', async () => {
			const path = await project.file('stop.csv', many(2_500));
			const stop = new AbortController();
			const argv = ['suppressions', 'import', path];
			const stopped = await project.run([...argv, '-o', 'json'], {
				interrupts: stop.signal,
				connect: afterBatch(() => stop.abort(new Interrupted('SIGINT'))),
			});
			expect({ code: stopped.code, counts: JSON.parse(stopped.stdout) }).toEqual({
				code: 130,
				counts: { read: 1_000, created: 999, updated: 0, unchanged: 0, duplicate: 0, rejected: 1 },
			});
			expect(errorOf(stopped)).toMatchObject({
				code: 'interrupted',
				hint: expect.stringContaining(
					'the rows counted so far are imported; run the same command again for the rest',
				),
			});
			await rm(`${path}.rejects.csv`);
			expect(await project.json(argv, { code: 9 })).toMatchObject({ created: 1_501, unchanged: 999 });
		});

		it('requires --rejects for standard input, except in a dry run', async () => {
			const argv = ['suppressions', 'import', '-'];
			const stdin = `email;reason\n${ann};MANUAL\nnobody;MANUAL\n`;
			expect(await project.json([...argv, '-n'], { stdin })).toMatchObject({ created: 1, rejected: 1 });
			expect((await project.run(argv, { stdin })).code).toBe(2);
			const rejects = join(project.folder, 'left.csv');
			const done = await project.run([...argv, '--rejects', rejects], { stdin });
			expect(done.stderr).toContain(`1 rejected row is in ${rejects}; correct it and import that file`);
			expect((await readFile(rejects, 'utf8')).split('\n')[0]).toBe('email;reason;_line;_code;_error');
		});

		it('understands the words that other services use for reasons', async () => {
			const reasons =
				'Bounce COMPLAINT hard-bounced HardBounce SpamComplaint ManualSuppression unsubscribed Abgemeldet soft_bounce spam désabonné';
			const rows = reasons.split(' ').map((word, at) => `${String.fromCharCode(97 + at)}@e.org,${word}\n`);
			for (const name of ['Reason', 'Status']) {
				const path = await project.file('stop.csv', `Email,${name}\n${rows.join('')}x@e.org,active\n`);
				expect(JSON.parse((await imported(path)).stdout)).toMatchObject({ read: 12, rejected: 1 });
				expect(((await list()) as { reason: string }[]).map(({ reason }) => reason)).toEqual([
					...['HARDBOUNCED', 'COMPLAINED', 'HARDBOUNCED', 'HARDBOUNCED', 'COMPLAINED', 'MANUAL'],
					...['UNSUBSCRIBED', 'UNSUBSCRIBED', 'SOFTBOUNCED', 'COMPLAINED', 'UNSUBSCRIBED'],
				]);
			}
			const both = await project.file('both.csv', 'email,reason,status\nz@e.org,bounce,5.1.1\n');
			expect(JSON.parse((await imported(both, '--ignore-unknown')).stdout)).toMatchObject({ created: 1 });
		});

		it('reads the columns of other services with --map and --ignore-unknown', async () => {
			const path = await project.file('ses.csv', 'Who;When;Shoe\na@example.com;2025-03-01;44\n');
			const map = ['--map', 'Who=email', '--map', 'When=date_created', '--ignore-unknown'];
			expect(JSON.parse((await imported(path, ...map)).stdout)).toMatchObject({ created: 1 });
			expect(await list()).toMatchObject([{ date_created: '2025-03-01T00:00:00.000000' }]);
		});
	});

	describe('export', () => {
		beforeEach(async () => {
			await project.json(['suppressions', 'add', bob, '--expires', '2099-01-01']);
			const rows = Array.from({ length: 2_500 }, (_, at) => `p${at}@example.com,UNSUBSCRIBED,RECIPIENT`);
			const path = await project.file('many.csv', ['email,reason,source', ...rows, ''].join('\n'));
			await project.json(['suppressions', 'import', path]);
		});

		it.each(['csv', 'ndjson'] as const)('writes %s; importing it loses nothing', async (format) => {
			const out = (name: string) => join(project.folder, `${name}.${format}`);
			const done = await project.json(['suppressions', 'export', out('first')]);
			expect(done).toEqual({ file: out('first'), format, exported: 2_501 });
			const other = await makeProject();
			const counts = await other.json(['suppressions', 'import', out('first')]);
			expect(counts).toMatchObject({ read: 2_501, created: 2_501, rejected: 0 });
			await other.json(['suppressions', 'export', out('second')]);
			expect(await readFile(out('second'), 'utf8')).toBe(await readFile(out('first'), 'utf8'));
		});
	});
});
