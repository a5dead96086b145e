import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../src/api/errors.js';
import { keepTarget } from '../../src/cli/command-line.js';
import type { Connect } from '../../src/cli/create-context.js';
import { cli, makeHome } from '../support/cli.js';
import { connectTo } from '../support/fake-deployment.js';

const local = { flags: '--db news.db ', isRemote: false };
const remote = { flags: '--base-url https://mail.example.com ', isRemote: true };

describe('a hint with the target of its call', () => {
	it.each([
		['mailctl lists list', 'mailctl --db news.db lists list'],
		[
			'nothing is lost: mailctl engine queue resume',
			'nothing is lost: mailctl --db news.db engine queue resume',
		],
		[
			'mailctl send resume j goes on, mailctl send cancel j drops it',
			'mailctl --db news.db send resume j goes on, mailctl --db news.db send cancel j drops it',
		],
		["the engine's own: mailctl worker", "the engine's own: mailctl --db news.db worker"],
	])('has it in each command of %j', (hint, kept) => {
		expect(keepTarget(hint, local)).toBe(kept);
	});

	it.each([
		['a command without one', 'mailctl profile use prod; mailctl config path; mailctl login --profile prod'],
		['a command that names one', 'mailctl engine init --db other.db'],
		['a command that names a profile', 'mailctl lists list -p prod'],
		['a global option in front', 'mailctl --profile prod … goes there'],
		['a question for help', 'mailctl lists list --help'],
		['a process', 'mailctl serve (pid 4711) goes on with this database'],
		['what somebody wrote, in quotes', 'give the id of "mailctl lists list"'],
		["a shell's word", "did you mean 'mailctl lists list'?"],
		["a shell's word with an apostrophe", "mailctl config set list 'it'\\''s mailctl lists list'"],
		['another word', 'mailctl sends; the mailctl lists-file'],
	])('is left as it is where it is %s', (_what, hint) => {
		expect(keepTarget(hint, local)).toBe(hint);
	});

	it('puts a deployment into no command of the machine that owns the database', () => {
		const hint = 'mailctl engine queue resume, on the machine that owns the database; mailctl messages list';
		expect(keepTarget(hint, remote)).toBe(
			'mailctl engine queue resume, on the machine that owns the database; mailctl --base-url https://mail.example.com messages list',
		);
	});

	it('is the same where no flag named a target', () => {
		expect(keepTarget('mailctl lists list', { flags: '', isRemote: false })).toBe('mailctl lists list');
	});
});

describe('the command line', () => {
	const connect = connectTo([]);

	it.each([
		[['--db', 'my news.db'], "mailctl --db 'my news.db' lists list"],
		[['--db', "ann's.db"], "mailctl --db 'ann'\\''s.db' lists list"],
		[['--base-url', 'https://mail.example.com'], 'mailctl --base-url https://mail.example.com lists list'],
		[['-p', 'local'], 'mailctl -p local lists list'],
		[['-plocal'], 'mailctl -p local lists list'],
		[[], 'mailctl lists list'],
	])('with %j says where the command of a hint goes, to people and in JSON', async (flags, command) => {
		const words = [...flags, 'lists', 'get', '99'];
		expect((await cli(words, { connect })).stderr).toBe(`error: list 99 not found\nhint: ${command}\n`);
		const { stderr } = await cli([...words, '-o', 'json'], { connect });
		expect(JSON.parse(stderr).error.hint).toBe(command);
	});

	it('says how the deployment is reached, but no token and no password of a proxy', async () => {
		const home = await makeHome();
		const [token, ca] = [join(home, 'shop.token'), join(home, 'ca.pem')];
		await Promise.all([writeFile(token, 'tok-1'), writeFile(ca, '-----BEGIN CERTIFICATE-----')]);
		const url = 'https://mail.example.com';
		const words = ['--base-url', url, '--token-file', token, '--ca-cert', ca, '--insecure'];
		const proxy = ['--proxy', 'http://me:secret@proxy.example.com'];
		const { stderr } = await cli([...words, ...proxy, 'lists', 'get', '99'], { connect });
		expect(stderr).toBe(`error: list 99 not found\nhint: mailctl ${words.join(' ')} lists list\n`);
	});

	it('says nothing of what the environment names: it is named there for the next command too', async () => {
		const { stderr } = await cli(['lists', 'get', '99'], { connect, env: { MAILCTL_DB: 'news.db' } });
		expect(stderr).toContain('hint: mailctl lists list\n');
	});

	it('leaves messages alone: they repeat what others wrote', async () => {
		const { stderr } = await cli(['--db', 'news.db', 'lists', 'list'], {
			connect: failing(new ApiError('conflict', 'no: mailctl lists list')),
		});
		expect(stderr).toBe('error: no: mailctl lists list\n');
	});
});

function failing(error: Error): Connect {
	return async () => {
		throw error;
	};
}
