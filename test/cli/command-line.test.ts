import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../src/api/errors.js';
import { type Hint, hintText, mailctl, unnamed } from '../../src/cli/frame/command-line.js';
import type { Connect } from '../../src/cli/frame/connection.js';
import { cli, makeHome } from '../support/cli.js';
import { allCommands, type Leaf } from '../support/command-tree.js';
import { connectTo } from '../support/fake-deployment.js';

const local = { words: ['--db', 'news.db'], isRemote: false };
const remote = { words: ['--base-url', 'https://mail.example.com'], isRemote: true };

describe('a hint', () => {
	it.each<[Hint, string]>([
		[mailctl('lists', 'list'), 'mailctl --db news.db lists list'],
		[
			['nothing is lost: ', mailctl('engine', 'queue', 'resume')],
			'nothing is lost: mailctl --db news.db engine queue resume',
		],
		[
			[
				mailctl('campaigns', 'resume', "ann's"),
				' goes on, ',
				[mailctl('campaigns', 'cancel', 'j k'), ' drops it'],
			],
			"mailctl --db news.db campaigns resume 'ann'\\''s' goes on, mailctl --db news.db campaigns cancel 'j k' drops it",
		],
		[
			[mailctl('engine', 'settings', 'set', 'smtp_ca', '-'), ' < ca.pem'],
			'mailctl --db news.db engine settings set smtp_ca - < ca.pem',
		],
	])('names the database in every command that it proposes: %j', (hint, said) => {
		expect(hintText(hint, local)).toBe(said);
	});

	it.each<[string, Hint, string]>([
		[
			'needs no target',
			[mailctl('profile', 'use', 'prod'), '; ', mailctl('config', 'path'), '; ', mailctl('login')],
			'mailctl profile use prod; mailctl config path; mailctl login',
		],
		['names its target', mailctl('engine', 'init', '--db', 'other.db'), 'mailctl engine init --db other.db'],
		['names a profile', mailctl('lists', 'list', '-p', 'prod'), 'mailctl lists list -p prod'],
		[
			'begins with a global option',
			[mailctl('--profile', 'prod'), ' … goes there'],
			'mailctl --profile prod … goes there',
		],
		['has the option --help', mailctl('lists', 'list', '--help'), 'mailctl lists list --help'],
		['prints help', mailctl('--help'), 'mailctl --help'],
	])('adds no --db option to a command that %s', (_what, hint, said) => {
		expect(hintText(hint, local)).toBe(said);
	});

	it('adds no --base-url to commands that run only on the database’s machine', () => {
		const hint = [mailctl('engine', 'queue', 'resume'), ', on that machine; ', mailctl('messages', 'list')];
		expect(hintText(hint, remote)).toBe(
			'mailctl engine queue resume, on that machine; mailctl --base-url https://mail.example.com messages list',
		);
	});

	it('adds --db to every command that accepts a target, and to no other command', async () => {
		const withIt = (await allCommands()).filter(({ path }) =>
			hintText(mailctl(...path.split(' ')), local).includes('--db'),
		);
		const goesToOne = ({ path, command }: Leaf) =>
			command.reach === undefined && !['help', 'commands', 'version'].includes(path);
		expect(withIt.map(({ path }) => path)).toEqual(
			(await allCommands()).filter(goesToOne).map(({ path }) => path),
		);
	});

	it('adds no --db to commands in text that a service wrote', () => {
		const text = 'give the id of "mailctl lists list", mailctl lists list, mailctl serve (pid 4711)';
		expect(hintText([text, '; ', mailctl('lists', 'list')], local)).toBe(
			`${text}; mailctl --db news.db lists list`,
		);
	});

	it('has neither --db nor --base-url if the user gave neither option', () => {
		expect(hintText(mailctl('lists', 'list'), unnamed)).toBe('mailctl lists list');
	});
});

describe('an error message', () => {
	const connect = connectTo([]);

	it.each([
		[['--db', 'my news.db'], "mailctl --db 'my news.db' lists list"],
		[['--db', "ann's.db"], "mailctl --db 'ann'\\''s.db' lists list"],
		[['--base-url', 'https://mail.example.com'], 'mailctl --base-url https://mail.example.com lists list'],
		[['-p', 'local'], 'mailctl -p local lists list'],
		[['-plocal'], 'mailctl -p local lists list'],
		[[], 'mailctl lists list'],
	])('has a hint that repeats the failed command’s target, in text and in JSON: %j', async (flags, command) => {
		const words = [...flags, 'lists', 'get', '99'];
		expect((await cli(words, { connect })).stderr).toBe(`error: list 99 not found\nhint: ${command}\n`);
		const { stderr } = await cli([...words, '-o', 'json'], { connect });
		expect(JSON.parse(stderr).error.hint).toBe(command);
	});

	it('has a hint that repeats the connection options, but omits a proxy URL with a password', async () => {
		const home = await makeHome();
		const [token, ca] = [join(home, 'shop.token'), join(home, 'ca.pem')];
		await Promise.all([writeFile(token, 'tok-1'), writeFile(ca, '-----BEGIN CERTIFICATE-----')]);
		const url = 'https://mail.example.com';
		const words = ['--base-url', url, '--token-file', token, '--ca-cert', ca, '--insecure'];
		const proxy = ['--proxy', 'http://me:secret@proxy.example.com'];
		const { stderr } = await cli([...words, ...proxy, 'lists', 'get', '99'], { connect });
		expect(stderr).toBe(`error: list 99 not found\nhint: mailctl ${words.join(' ')} lists list\n`);
	});

	it('has a hint without --db if MAILCTL_DB names the database', async () => {
		const { stderr } = await cli(['lists', 'get', '99'], { connect, env: { MAILCTL_DB: 'news.db' } });
		expect(stderr).toContain('hint: mailctl lists list\n');
	});

	it('adds no --db to a command in the service’s own message', async () => {
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
