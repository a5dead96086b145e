/** The flat list of all commands, for tests that must not miss one. */
import { type Command, type CommandGroup, flagOf, isCommand, loadNode } from '../../src/cli/frame/command.js';
import { tree } from '../../src/cli/tree.js';

export interface Leaf {
	path: string;
	command: Command;
}

export async function allCommands(): Promise<Leaf[]> {
	const nodes = await Promise.all(tree.map(loadNode));
	return nodes.flatMap((node) => leavesOf(node, []));
}

function leavesOf(node: Command | CommandGroup, above: readonly string[]): Leaf[] {
	const path = [...above, node.name];
	if (isCommand(node)) return [{ path: path.join(' '), command: node }];
	const self = node.self === undefined ? [] : [{ path: path.join(' '), command: node.self }];
	return [...self, ...node.commands.flatMap((inner) => leavesOf(inner, path))];
}

export function changing({ changes = [], options }: Command): string[] {
	const key = changes.find((key) => options[key]?.kind === 'text' && options[key].of === undefined);
	return key === undefined ? [] : [flagOf(key), 'x'];
}
