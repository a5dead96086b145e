/** A command on several records that ends before the last: it says how far it came, and the command that goes on. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Api } from '../../../src/api/api.js';
import { ApiError } from '../../../src/api/errors.js';
import { connect } from '../../../src/cli/connect.js';
import type { Connect } from '../../../src/cli/frame/connection.js';
import { Interrupted } from '../../../src/cli/frame/errors.js';
import { allCommands } from '../../support/command-tree.js';
import { makeProject, type Project } from '../../support/project.js';

/** Every object of the API with its operations of that name in the hands of `called`. */
function watched<T>(whole: T, name: string, called: (go: () => unknown) => unknown): T {
	if (typeof whole !== 'object' || whole === null) return whole;
	return new Proxy(whole, {
		get: (target, key) => {
			const value: unknown = Reflect.get(target, key);
			if (typeof value !== 'function') return watched(value, name, called);
			return (...given: unknown[]) => {
				const go = () => value.apply(target, given);
				if (key === name) return called(go);
				const result: unknown = go();
				if (key === 'capabilities') return Promise.resolve(result).then((one) => watched(one, name, called));
				return key === 'subscribers' ? watched(result, name, called) : result;
			};
		},
	});
}

function endingAt2(name: string, end: (go: () => unknown) => unknown): Connect {
	let calls = 0;
	return async (target, dependencies) => {
		const connection = await connect(target, dependencies);
		const called = (go: () => unknown) => {
			calls += 1;
			return calls === 2 ? end(go) : go();
		};
		return { ...connection, api: watched<Api>(connection.api, name, called) };
	};
}

const emails = ['ann@example.com', 'bob@example.com', 'carl@example.com'];
const people = emails.join(' ');

const calls: Readonly<Record<string, readonly [words: string, operation: string, again: string]>> = {
	'lists delete': ['1 2 3 --confirm 3', 'delete', '2 3 --confirm 2'],
	'subscribers activate': [`${people} -l 1`, 'patch', '2 3 --list 1'],
	'subscribers deactivate': [`${people} -l 1`, 'patch', '2 3 --list 1'],
	'subscribers delete': [`1 2 3 -l 1 --confirm 3`, 'delete', '2 3 --list 1 --yes'],
	'webhooks delete': ['1 2 3 -y', 'delete', '2 3 --yes'],
	'messages cancel': ['M1 M2 M3 -y', 'cancel', 'M2 M3 --yes'],
	'messages retry': ['M1 M2 M3', 'retry', 'M2 M3'],
	'suppressions add': [
		`${people} --reason UNSUBSCRIBED --list 1 --expires 30d`,
		'create',
		`${emails[1]} ${emails[2]} --reason UNSUBSCRIBED --list 1 --expires 30d`,
	],
	'suppressions remove': [
		'x@example.com y@example.com z@example.com --reason MANUAL -y',
		'remove',
		'y@example.com z@example.com --reason MANUAL --yes',
	],
};

describe('a command on several records that ends at the second', () => {
	let project: Project;
	let ids: readonly string[];
	beforeEach(async () => {
		project = await makeProject({ smtp: 9 });
		const make = (line: string) => project.json(line.split(' '));
		for (const name of ['A', 'B', 'C']) await make(`lists create --name ${name} --email-reason r`);
		for (const email of emails) {
			await make(`subscribers create -l 1 --email ${email}`);
			await make('webhooks create --url https://hooks.example.com/ --type OPENED');
			await make(`send --from news@example.com --to ${email} --subject S --text T --no-wait`);
		}
		await make('suppressions add x@example.com y@example.com z@example.com');
		const messages = (await make('messages list --all')) as { id: string; to: string }[];
		ids = emails.map((email) => messages.find(({ to }) => to === email)?.id ?? '');
	});
	const named = (text: string) => text.replace(/\bM(\d)\b/g, (_, at) => ids[Number(at) - 1] ?? '');

	it.each(Object.entries(calls))('says what goes on: %s', async (path, [words, operation, again]) => {
		const argv = [...path.split(' '), ...named(words).split(' ')];
		const lost = () => Promise.reject(new ApiError('server_error', 'the service failed'));
		const hint = `mailctl --db ${project.db} ${path} ${named(again)}`;
		const told = `warning: stopped after 1 of 3\nhint: ${hint} goes on\n`;
		const failed = await project.run(argv, { connect: endingAt2(operation, lost) });
		expect(failed).toMatchObject({ code: 7, stdout: '' });
		expect(failed.stderr).toBe(`${told}error: the service failed\n`);
		const [, ...goesOn] = hint.split(' ');
		const { code, stderr } = await project.run(goesOn.slice(2));
		expect([code, stderr.includes('warning')]).toEqual([0, false]);
	});

	it.each(Object.entries(calls))('says it at Ctrl-C too: %s', async (path, [words, operation, again]) => {
		const stop = new AbortController();
		const argv = [...path.split(' '), ...named(words).split(' ')];
		const last = async (go: () => unknown) => {
			const result = await go();
			stop.abort(new Interrupted('SIGINT'));
			return result;
		};
		const { code, stderr } = await project.run(argv, {
			connect: endingAt2(operation, last),
			interrupts: stop.signal,
		});
		const third = named(again).replace(/^\S+ /, '').replace('--confirm 2', '--confirm C');
		expect([code, stderr]).toEqual([
			130,
			`warning: stopped after 2 of 3\nhint: mailctl --db ${project.db} ${path} ${third} goes on\ninterrupted\n`,
		]);
	});

	it('names the first of many that are left', async () => {
		const rows = Array.from({ length: 30 }, (_, at) => `p${at}@example.com`);
		await project.run([
			'subscribers',
			'import',
			await project.file('p.csv', `email\n${rows.join('\n')}\n`),
			'-l',
			'2',
		]);
		const lost = () => Promise.reject(new ApiError('server_error', 'the service failed'));
		const { stderr } = await project.run(['subscribers', 'delete', '-', '-l', '2', '-y'], {
			stdin: rows.join('\n'),
			connect: endingAt2('delete', lost),
		});
		expect(stderr).toBe(
			'warning: stopped after 1 of 30\nhint: 5 and the 28 after it are left\nerror: the service failed\n',
		);
	});
});

it('is every command that takes several records and changes each', async () => {
	const several = (await allCommands()).filter(
		({ command: { args, writes, hidden } }) =>
			writes === true &&
			hidden !== true &&
			args.some(({ many, optional }) => many === true && optional !== true),
	);
	expect(several.map(({ path }) => path).sort()).toEqual(Object.keys(calls).sort());
});
