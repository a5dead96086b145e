import {
	type Command,
	type CommandGroup,
	childOf,
	command as describe,
	isCommand,
	loadNode,
	type Tree,
} from '../frame/command.js';
import { describeAll, describeNode } from '../frame/description.js';
import { UsageError } from '../frame/errors.js';
import { isMachine } from '../frame/globals.js';
import { fitHelp, fitTopic, nodeHelp, rootHelp, topicNames } from '../frame/help.js';
import { didYouMean } from '../frame/words.js';

const topics = `topics: ${topicNames.join(', ')}`;

export const command = describe({
	name: 'help',
	summary: 'show help on a topic or a command',
	description: `Topics: ${topicNames.join(', ')}.`,
	args: [{ name: 'topic', summary: 'a topic, or the words of a command', optional: true, many: true }],
	output:
		'the command and its subcommands: {"name", "aliases", "summary", "description", "arguments", "options", "output", ' +
		'"exit_codes", "examples", "writes", "commands"}; for a topic {"topic", "text"}',
	examples: ['mailctl help exit-codes', 'mailctl help lists create', 'mailctl help lists create -o json'],
	needsNoTarget: true,
	run: async (cx, { args: { topic: words } }) => {
		const screen = cx.io.stdout;
		const topic = words.length === 1 ? topicNames.find((one) => one === words[0]) : undefined;
		if (topic !== undefined) {
			const { topicText } = await import('../frame/topics.js');
			const text = topicText(topic);
			return isMachine(cx.askedFormat)
				? cx.out.document({ topic, text })
				: cx.out.page(await fitTopic(text, screen));
		}
		const found = await findNode(cx.tree, words);
		if (isMachine(cx.askedFormat)) return cx.out.document(await described(cx.tree, found));
		return cx.out.page(
			await fitHelp(found === null ? rootHelp(cx.tree) : nodeHelp(found.node, found.path), screen),
		);
	},
});

interface Found {
	node: Command | CommandGroup;
	path: readonly string[];
}

async function findNode(tree: Tree, words: readonly string[]): Promise<Found | null> {
	const [word] = words;
	if (word === undefined) return null;
	const entry = tree.find(({ name }) => name === word);
	if (entry === undefined) {
		const near = didYouMean(word, [...topicNames, ...tree.map(({ name }) => name)]);
		throw new UsageError(`unknown help topic "${word}"`, { hint: [near, topics].filter(Boolean).join(' ') });
	}
	let node = await loadNode(entry);
	const path = [node.name];
	for (const next of words.slice(1)) {
		const child = isCommand(node) ? undefined : childOf(node, next);
		if (child === undefined)
			throw new UsageError(`unknown help topic "${[...path, next].join(' ')}"`, { hint: topics });
		node = child;
		path.push(node.name);
	}
	return { node, path };
}

async function described(tree: Tree, found: Found | null): Promise<object> {
	if (found !== null) return describeNode(found.node, found.path);
	return describeAll(await Promise.all(tree.map(loadNode)));
}
