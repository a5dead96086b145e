import { complete, type NameSources } from '../completion/complete.js';
import { nameKey, readNames } from '../completion/names.js';
import { bashReply, filesLine, readBash, type Shell, scripts } from '../completion/scripts.js';
import { type ConfigFile, readConfig } from '../config/config.js';
import { chooseTarget } from '../config/target.js';
import { type CommandGroup, command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { isMachine, type RawGlobals } from '../frame/globals.js';
import { given } from '../frame/values.js';
import { clean } from '../render/clean.js';

const about =
	'Completes commands, options, values, and names that earlier commands showed. Completion never uses the network.';

const words = command({
	name: 'words',
	summary: 'list completions of a command line',
	args: [{ name: 'word', summary: 'the words after mailctl, with a dot before the last one', many: true }],
	options: {
		bash: {
			kind: 'text',
			placeholder: '.TEXT',
			summary: 'the part of the last word that bash replaces, with a dot before it',
		},
	},
	hidden: true,
	reach: [],
	needsNoTarget: true,
	async run(cx, { args, options: { bash } }) {
		const words = bash === undefined ? joined(args.word) : joinedByBash(args.word);
		const { candidates, files } = await complete(words, sourcesOf(cx, words));
		if (files) return cx.out.raw(`${filesLine}\n`);
		const shown = candidates.filter(({ value }) => clean(value) === value);
		const last = args.word.at(-1)?.slice(1) ?? '';
		const lines =
			bash === undefined
				? shown.map(({ value, about }) => (about === '' ? value : `${value}\t${clean(about)}`))
				: shown.flatMap(({ value }) => bashReply(value, last === '=' ? '' : last, bash.slice(1)) ?? []);
		if (lines.length > 0) await cx.out.raw(`${lines.join('\n')}\n`);
	},
});

function joined(given: readonly string[]): string[] {
	return [...given.slice(0, -1), (given.at(-1)?.slice(1) ?? '').replace(/^["'\u2018-\u201e]/, '')];
}

/** bash keeps quotes, splits `--output=js` at the equals sign, and completes only the value after it. */
function joinedByBash(given: readonly string[]): string[] {
	const last = given.at(-1)?.slice(1) ?? '';
	const words = [...given.slice(0, -1).filter((word) => word !== '='), last === '=' ? '' : last];
	return words.map((word) => readBash(word).text);
}

function sourcesOf(cx: CommandContext, given: readonly string[]): NameSources {
	const config = configOf(cx);
	return {
		tree: cx.tree,
		names: async (kind) => {
			try {
				const target = chooseTarget(globalsOf(given), cx.io.env, config, cx.paths).target();
				const names = Object.values(readNames(cx.paths.names, nameKey(target))[kind]);
				// Names are not unique, and commands would parse a name such as `--yes` as an option.
				return [...new Set(names)].filter((name) => !name.startsWith('-')).sort();
			} catch {
				return [];
			}
		},
		profiles: () => ['local', ...Object.keys(config.profiles)],
	};
}

function configOf(cx: CommandContext): ConfigFile {
	try {
		return readConfig(cx.paths);
	} catch {
		return { profile: null, profiles: {} };
	}
}

function globalsOf(words: readonly string[]): RawGlobals {
	const valueAfter = (...flags: readonly string[]) => {
		for (const [at, word] of words.entries()) {
			const [flag = '', value] = word.split(/=(.*)/s);
			if (flags.includes(flag)) return value ?? words[at + 1];
		}
		return undefined;
	};
	const profile = valueAfter('-p', '--profile');
	return given({ profile, db: valueAfter('--db'), baseUrl: valueAfter('--base-url') });
}

function scriptFor(shell: Shell, title: string) {
	return command({
		name: shell,
		summary: `print the script for ${title}`,
		description: `${scripts[shell].load}\n\n${about}`,
		examples: [`mailctl completion ${shell}`],
		reach: [],
		needsNoTarget: true,
		run: async (cx) => {
			const what = `completion ${shell} prints a shell script, so -o json and --query cannot be used`;
			if (isMachine(cx.askedFormat)) throw new UsageError(what);
			await cx.out.raw(scripts[shell].text);
		},
	});
}

export const group: CommandGroup = {
	name: 'completion',
	summary: 'complete commands, options and names in a shell',
	description: about,
	examples: ['mailctl completion bash', 'mailctl completion zsh'],
	commands: [
		...[scriptFor('bash', 'bash'), scriptFor('zsh', 'zsh'), scriptFor('fish', 'fish')],
		...[scriptFor('powershell', 'PowerShell'), words],
	],
};
