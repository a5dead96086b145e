import { describe, expect, it } from 'vitest';
import { messageStates } from '../../src/api/records.js';
import { type Command, type CommandGroup, isCommand, loadNode } from '../../src/cli/frame/command.js';
import { topicNames } from '../../src/cli/frame/help.js';
import { topicText } from '../../src/cli/frame/topics.js';
import { tree } from '../../src/cli/tree.js';

const nodes = await Promise.all(tree.map(loadNode));

describe('the topics of the help', () => {
	it.each(topicNames)('mention only commands that exist: %s', (topic) => {
		const commands = topicText(topic).matchAll(/mailctl (?!server)((?:[a-z][a-z-]*(?: |$))+)/gm);
		const unknown = [...commands].map(([, words = '']) => words.trim()).filter((words) => !exists(words));
		expect(unknown).toEqual([]);
	});

	it('explain each message state', () => {
		for (const state of messageStates) expect(topicText('states')).toMatch(new RegExp(`^  ${state} `, 'm'));
	});
});

/** Words after a complete command are prose. */
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
