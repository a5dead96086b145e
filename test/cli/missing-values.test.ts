/** A value that is missing in a script: the error says where it is to be had, or shows it in an example, in every command. */
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { type Command, flagOf, type OptionSpec } from '../../src/cli/frame/command.js';
import { UsageError } from '../../src/cli/frame/errors.js';
import { readInput } from '../../src/cli/frame/input.js';
import { cli } from '../support/cli.js';
import { allCommands } from '../support/command-tree.js';

/** Every argument and option without which a command does not run. */
const missing = (await allCommands())
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
function rawWithout({ options }: Command, flag: string, words: number) {
	const others = Object.entries(options).filter(
		([key, spec]) => 'required' in spec && spec.required === true && flagOf(key) !== flag,
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

it('is shown with the example that has it', async () => {
	expect(await cli(['lists', 'create', '--name', 'News'])).toMatchObject({
		code: 2,
		stderr: expect.stringMatching(
			/^error: missing --email-reason: .*\nhint: such as mailctl lists create --name .* --email-reason /,
		),
	});
});
