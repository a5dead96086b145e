/** Commands without a value that they need, such as an update without a change. */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { flagsOf, type OptionSpec } from '../../src/cli/frame/command.js';
import { cli } from '../support/cli.js';
import { allCommands } from '../support/command-tree.js';
import { typing } from '../support/typing.js';

const all = await allCommands();

/** The commands fail before they connect, so nothing listens here. */
const nowhere = ['--base-url', 'http://127.0.0.1:9', '--retries', '0'];

describe('an update', () => {
	const updates = all.filter(({ path }) => path.endsWith(' update'));
	const texts = {
		'lists update': 'nothing to change: give one of --name, --email-reason, --public-name',
		'subscribers update':
			'nothing to change: give one of --email, --name, --meta, --meta-json, --unset-meta, --active, --inactive',
		'fields update': 'nothing to change: give one of --variable, --name',
		'templates update': 'nothing to change: give one of --name, --text-file, --html-file, --markdown-file',
		'webhooks update':
			'nothing to change: give one of --url, --type, --login, --password-file, --password-stdin, --auth, --no-auth',
	};

	it('has an expected error in this file for every update command', () => {
		expect(updates.map(({ path }) => path)).toEqual(Object.keys(texts));
	});

	it.each(
		Object.entries(texts),
	)('without a change is rejected before any request: %s', async (path, text) => {
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

	it.each(updates)('with a single change is accepted: $path', async ({ path, command }) => {
		for (const [key, spec] of Object.entries(command.options)) {
			if (command.changes?.includes(key) !== true) continue;
			for (const flag of flagsOf(key, spec)) {
				const { stderr } = await cli([...path.split(' '), '1', flag, ...textsFor(spec), ...nowhere]);
				expect(stderr, flag).not.toContain('nothing to change');
			}
		}
	});
});

function givenOf(spec: OptionSpec): string | string[] {
	if (spec.kind === 'choice') return spec.choices[0] ?? '';
	if (spec.kind === 'choices') return [...spec.choices.slice(0, 1)];
	return spec.kind === 'list' ? ['x'] : 'x';
}

function textsFor(spec: OptionSpec): string[] {
	if (spec.kind === 'flag' || spec.kind === 'tri') return [];
	if (spec.kind === 'pairs') return ['a=b'];
	return [spec.kind === 'content' ? '{}' : String(givenOf(spec))];
}
