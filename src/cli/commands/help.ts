/** `mailctl help [topic | command…]`. */
import { command as describe, isCommand } from '../frame/command.js';
import { UsageError } from '../frame/errors.js';
import { commandHelp, didYouMean, fitHelp, fitTopic, groupHelp, rootHelp } from '../frame/help.js';
import { topicNames } from '../frame/topic-names.js';
import { loadNode, tree } from '../tree.js';

const topics = `topics: ${topicNames.join(', ')}`;

export const command = describe({
	name: 'help',
	summary: 'help on a topic or a command',
	description: `Topics: ${topicNames.join(', ')}.`,
	args: [{ name: 'topic', summary: 'a topic, or the words of a command', optional: true, many: true }],
	examples: ['mailctl help exit-codes', 'mailctl help lists create'],
	run: async (cx, { args: { topic: words } }) => {
		const screen = cx.io.stdout;
		const topic = words.length === 1 ? topicNames.find((one) => one === words[0]) : undefined;
		if (topic === undefined) return cx.out.page(fitHelp(await helpOn(words), screen));
		const { topicText } = await import('../frame/topics.js');
		return cx.out.page(fitTopic(topicText(topic), screen));
	},
});

async function helpOn(words: readonly string[]): Promise<string> {
	const [word] = words;
	if (word === undefined) return rootHelp(tree);
	const entry = tree.find(({ name }) => name === word);
	if (entry === undefined) {
		const near = didYouMean(word, [...topicNames, ...tree.map(({ name }) => name)]);
		throw new UsageError(`no help on "${word}"`, { hint: [near, topics].filter(Boolean).join(' ') });
	}
	let node = await loadNode(entry);
	const path = [node.name];
	for (const next of words.slice(1)) {
		const child = isCommand(node)
			? undefined
			: node.commands.find((one) => one.name === next || one.aliases?.includes(next) === true);
		if (child === undefined)
			throw new UsageError(`no help on "${[...path, next].join(' ')}"`, { hint: topics });
		node = child;
		path.push(node.name);
	}
	return isCommand(node) ? commandHelp(node, path) : groupHelp(node, path);
}
