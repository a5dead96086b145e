import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { topicNames } from '../../src/cli/frame/help.js';
import { topicText } from '../../src/cli/frame/topics.js';
import { parseRate } from '../../src/cli/frame/values.js';
import { settingNames } from '../../src/engine/rules/settings.js';
import { allCommands } from '../support/command-tree.js';

const root = join(import.meta.dirname, '../..');

describe('--rate', () => {
	it.each([
		['10', 10],
		['10/s', 10],
		['0.5/s', 0.5],
		['600/m', 10],
		['600/1m', 10],
		['36000/H', 10],
		['36000/1h', 10],
		['600/5m', 2],
		[' 10/s ', 10],
		['1/744h', 1 / (31 * 86_400)],
	])('accepts %j', (text, perSecond) => {
		expect(parseRate(text)).toBe(perSecond);
	});

	it.each([
		'0',
		'0/s',
		'-1',
		'1e3',
		'100/x',
		'',
		'100/0h',
		'100/',
		'/s',
		'10/d',
		'Infinity',
		'10/1.5h',
	])('rejects %j', (text) => {
		expect(() => parseRate(text)).toThrow(`--rate "${text}" is not a rate, such as 10/s, 600/m or 100/h`);
	});

	it('rejects a rate below one message in 31 days', () => {
		expect(() => parseRate('1/745h')).toThrow('--rate "1/745h" is less than one in 31 days');
	});
});

it('help and documents write a rate as 10/s instead of 10/1s', async () => {
	const commands = (await allCommands()).map(({ command: { run: _, whenStopped: __, ...described } }) =>
		JSON.stringify(described),
	);
	const pages = (await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md'));
	const documents = [...pages.map((name) => `docs/${name}`), 'README.md'];
	const texts = await Promise.all(documents.map((name) => readFile(join(root, name), 'utf8')));
	const all = [...commands, ...texts, ...topicNames.map(topicText), ...Object.values(settingNames)];
	expect(all.flatMap((text) => text.match(/\b\d+\/1[smhd]\b/g) ?? [])).toEqual([]);
});
