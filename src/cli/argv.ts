/** The words of the command line made safe for a parser that looks for global options everywhere. */
import { type Command, type CommandGroup, isCommand, type OptionSpec } from './command.js';
import { flagOf, offFlagOf } from './flags.js';
import { globalOptions } from './globals.js';

/**
 * Joins each of the command's own options with its value: `--sort -name` becomes `--sort=-name`, which would otherwise
 * be read as `-n` (a dry run!) and rubbish. A word that is exactly a flag stays a flag, so that a forgotten value is
 * noticed: `--name --json`; who means it writes `--name=--json`.
 */
export function joinValues(argv: readonly string[], commands: readonly (Command | CommandGroup)[]): string[] {
	const { valued, known } = flagsOf(commands);
	const joined: string[] = [];
	for (let at = 0; at < argv.length; at += 1) {
		const word = argv[at] ?? '';
		if (word === '--') return [...joined, ...argv.slice(at)];
		const value = argv[at + 1];
		if (!valued.has(word) || value === undefined || known.has(value)) {
			joined.push(word);
			// The value of a global option is none of ours, whatever it looks like.
			if (globalValued.has(word) && value !== undefined) joined.push(value);
			if (globalValued.has(word)) at += 1;
			continue;
		}
		joined.push(word.startsWith('--') ? `${word}=${value}` : `${word}${value}`);
		at += 1;
	}
	return joined;
}

const globalFlags = globalOptions.map(({ flags }) => ({
	names: flags.match(/--?[a-z][a-z-]*/g) ?? [],
	takesValue: flags.includes('<'),
}));
const globalValued = new Set(globalFlags.flatMap(({ names, takesValue }) => (takesValue ? names : [])));

function flagsOf(commands: readonly (Command | CommandGroup)[]) {
	const specs = commands
		.map((node) => (isCommand(node) ? node.options : (node.self?.options ?? {})))
		.flatMap((options) => Object.entries(options));
	const known = ['--', '--help', '-h', ...globalFlags.flatMap(({ names }) => names)];
	const valued = specs.filter(([, { kind }]) => kind !== 'flag' && kind !== 'tri');
	return {
		known: new Set([...known, ...specs.flatMap(([key, spec]) => namesOf(key, spec))]),
		valued: new Set(valued.flatMap(([key, spec]) => namesOf(key, spec))),
	};
}

function namesOf(key: string, spec: OptionSpec): string[] {
	const short = spec.short === undefined ? [] : [`-${spec.short}`];
	return [flagOf(key), ...short, ...(spec.kind === 'tri' ? [offFlagOf(key, spec)] : [])];
}
