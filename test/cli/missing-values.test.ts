/** A value that is missing in a script: the error says where it is to be had, or shows it in an example, in every command. */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { type Command, flagOf, flagsOf, type OptionSpec } from '../../src/cli/frame/command.js';
import { UsageError } from '../../src/cli/frame/errors.js';
import { readInput } from '../../src/cli/frame/input.js';
import { cli } from '../support/cli.js';
import { allCommands } from '../support/command-tree.js';
import { typing } from '../support/typing.js';

const all = await allCommands();

/** Every argument and option without which a command does not run. */
const missing = all
	.filter(({ command }) => command.hidden !== true)
	.flatMap(({ path, command }) => [
		...command.args.flatMap(({ name, optional }, at) =>
			optional === true ? [] : [[path, `<${name}>`, command, at] as const],
		),
		...Object.entries(command.options).flatMap(([key, spec]) =>
			'required' in spec && spec.required === true ? [[path, flagOf(key), command, 0] as const] : [],
		),
	]);

function givenOf(spec: OptionSpec): string | string[] {
	if (spec.kind === 'choice') return spec.choices[0] ?? '';
	if (spec.kind === 'choices') return [...spec.choices.slice(0, 1)];
	return spec.kind === 'list' ? ['x'] : 'x';
}

/** All that is wanted but this one. */
function rawWithout({ options, changes = [] }: Command, flag: string, words: number) {
	const others = Object.entries(options).filter(
		([key, spec]) =>
			key === changes[0] || ('required' in spec && spec.required === true && flagOf(key) !== flag),
	);
	return {
		words: Array.from({ length: words }, () => 'x'),
		options: Object.fromEntries(others.map(([key, spec]) => [key, givenOf(spec)])),
	};
}

describe('the error of a missing value', () => {
	it.each(missing)('names a way to it or an example: %s %s', async (path, name, command, words) => {
		const parts = {
			env: {},
			settings: { list: { value: null } },
			clock: systemClock,
			sources: { file: () => ({}), content: () => ({}) },
			ask: null,
		};
		const reading = readInput(
			command,
			rawWithout(command, name, words),
			// What reading uses of them.
			parts as unknown as Parameters<typeof readInput>[2],
		);
		const error = await reading.then(
			() => null,
			(one: unknown) => one,
		);
		if (!(error instanceof UsageError)) throw error;
		expect(error.message).toContain(`missing ${name}: `);
		expect(error.hint).not.toBeNull();
		if (typeof error.hint !== 'string' || !error.hint.startsWith('such as ')) return;
		expect(error.hint).toMatch(new RegExp(`^such as mailctl .*\\b${path} `));
		if (name.startsWith('--')) expect(error.hint.replace(' -f ', ' --file ')).toContain(` ${name} `);
	});
});

/** Each asks a service that is not there, but for the first error. */
const nowhere = ['--base-url', 'http://127.0.0.1:9', '--retries', '0'];

describe('an update without a change', () => {
	const updates = all.filter(({ path }) => path.endsWith(' update'));
	const texts = {
		'lists update': 'nothing to change: give one of --name, --email-reason, --public-name',
		'subscribers update':
			'nothing to change: give one of --email, --name, --meta, --meta-json, --unset-meta, --active, --inactive',
		'fields update': 'nothing to change: give one of --variable, --name',
		'webhooks update':
			'nothing to change: give one of --url, --type, --login, --password-file, --password-stdin, --auth, --no-auth',
		'templates update': 'nothing to change: give one of --name, --text-file, --html-file, --markdown-file',
	};

	it('is known of every update', () => {
		expect(updates.map(({ path }) => path)).toEqual(Object.keys(texts));
	});

	it.each(Object.entries(texts))('is refused before anything is asked: %s', async (path, text) => {
		const stderr = `error: ${text}\n`;
		const words = path.split(' ');
		for (const more of [['1'], ['1', '--dry-run'], [], path === 'templates update' ? [] : ['1', '--replace']])
			expect(await cli([...words, ...more, ...nowhere])).toEqual({ code: 2, stdout: '', stderr });
		const asked = await typing([], (options) => cli([...words, ...nowhere], options), 200);
		expect({ ...asked, stderr: stripVTControlCharacters(asked.stderr) }).toEqual({
			code: 2,
			stdout: '',
			stderr,
		});
	});

	it.each(updates)('goes on with any of its options: $path', async ({ path, command }) => {
		for (const [key, spec] of Object.entries(command.options)) {
			if (command.changes?.includes(key) !== true) continue;
			for (const flag of flagsOf(key, spec)) {
				const { stderr } = await cli([...path.split(' '), '1', flag, ...textsFor(spec), ...nowhere]);
				expect(stderr, flag).not.toContain('nothing to change');
			}
		}
	});
});

function textsFor(spec: OptionSpec): string[] {
	if (spec.kind === 'flag' || spec.kind === 'tri') return [];
	if (spec.kind === 'pairs') return ['a=b'];
	return [spec.kind === 'content' ? '{}' : String(givenOf(spec))];
}

it('is shown with the example that has it', async () => {
	expect(await cli(['lists', 'create', '--name', 'News'])).toMatchObject({
		code: 2,
		stderr: expect.stringMatching(
			/^error: missing --email-reason: .*\nhint: such as mailctl lists create --name .* --email-reason /,
		),
	});
});
