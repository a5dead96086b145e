import { describe, expect, it } from 'vitest';
import { messageStates } from '../../src/api/records.js';
import { type Command, type CommandGroup, isCommand, loadNode } from '../../src/cli/frame/command.js';
import { topicNames } from '../../src/cli/frame/topic-names.js';
import { topicText } from '../../src/cli/frame/topics.js';
import { tree } from '../../src/cli/tree.js';
import { cli } from '../support/cli.js';

const nodes = await Promise.all(tree.map(loadNode));

describe('the topics of the help', () => {
	it('are all listed by the help', async () => {
		const { stdout } = await cli(['help']);
		for (const topic of topicNames) expect(stdout).toContain(topic);
		const { stdout: own } = await cli(['help', 'help']);
		expect(own.replaceAll(/\s+/g, ' ')).toContain(`Topics: ${topicNames.join(', ')}.`);
	});

	it('are listed behind a word that is none, with what is like it', async () => {
		const topics = `topics: ${topicNames.join(', ')}`;
		expect(await cli(['help', 'qqqqqq'])).toMatchObject({
			code: 2,
			stderr: `error: no help on "qqqqqq"\nhint: ${topics}\n`,
		});
		expect((await cli(['help', 'stats'])).stderr).toBe(
			`error: no help on "stats"\nhint: did you mean states? ${topics}\n`,
		);
		expect((await cli(['help', 'lists', 'limits'])).stderr).toContain(`hint: ${topics}`);
	});

	it.each(topicNames)('name commands that there are: %s', (topic) => {
		const commands = topicText(topic).matchAll(/mailctl (?!server)((?:[a-z][a-z-]*(?: |$))+)/gm);
		const unknown = [...commands].map(([, words = '']) => words.trim()).filter((words) => !exists(words));
		expect(unknown).toEqual([]);
	});

	it('explain each state of a message', () => {
		for (const state of messageStates) expect(topicText('states')).toMatch(new RegExp(`^  ${state} `, 'm'));
	});

	it.each(topicNames)('fit a terminal of 120 columns: %s', (topic) => {
		expect(
			topicText(topic)
				.split('\n')
				.filter((line) => line.length >= 120),
		).toEqual([]);
	});
});

/** `messages get`, or `serve`; words that follow a whole command are prose. */
function exists(words: string): boolean {
	const [name, ...rest] = words.split(' ');
	let node: Command | CommandGroup | undefined = nodes.find((one) => one.name === name);
	for (const word of rest) {
		if (node === undefined || isCommand(node)) break;
		const { self, commands }: CommandGroup = node;
		const next = commands.find((one) => one.name === word);
		if (next === undefined && self !== undefined) break;
		node = next;
	}
	return node !== undefined;
}
