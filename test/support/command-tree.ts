/** The whole command tree, flat: for tests that must leave no command out. */
import { type Command, type CommandGroup, isCommand } from '../../src/cli/frame/command.js';
import { loadNode, tree } from '../../src/cli/tree.js';

export interface Leaf {
	/** `subscribers import`, as typed. */
	path: string;
	command: Command;
}

/** Every command there is, hidden ones too, in the order of the help. */
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
