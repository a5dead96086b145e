import { type Command, type CommandGroup, type TreeEntry, visibleIn } from './command.js';
import { exitMeanings } from './exit.js';
import { globalOptions } from './globals.js';
import { argWord, optionLabel, optionSummary, purpose, tail } from './help.js';

interface ManPage {
	file: string;
	text: string;
}

export async function manPages(entries: readonly TreeEntry[], version: string): Promise<ManPage[]> {
	const pages = await Promise.all(entries.map((entry) => pageOf(entry, version)));
	return [{ file: 'mailctl.1', text: mainPage(entries, version) }, ...pages];
}

function mainPage(entries: readonly TreeEntry[], version: string): string {
	return lines(
		heading('mailctl', version),
		'.SH NAME',
		`mailctl \\- ${roff(purpose)}`,
		'.SH SYNOPSIS',
		'.B mailctl',
		'.I command',
		roff('[options]'),
		'.SH COMMANDS',
		...entries.flatMap(({ name, summary }) => term(`mailctl-${name}(1)`, summary)),
		'.SH GLOBAL OPTIONS',
		...globalOptions
			.filter(({ hidden }) => hidden !== true)
			.flatMap(({ flags, summary }) => term(flags, summary)),
		'.SH ENVIRONMENT',
		...globalOptions
			.filter(({ environment, hidden }) => environment !== undefined && hidden !== true)
			.flatMap(({ flags, environment = '' }) => term(environment, flags)),
		'.SH EXIT STATUS',
		...Object.entries(exitMeanings).flatMap(([code, meaning]) => term(code, meaning)),
		'.SH SEE ALSO',
		roff('mailctl help output, sending, importing, states, bounces, notifications'),
	);
}

async function pageOf({ name, summary, load }: TreeEntry, version: string): Promise<ManPage> {
	const loaded = await load();
	const body = 'command' in loaded ? commandLines(loaded.command, [name]) : groupLines(loaded.group, [name]);
	const text = lines(
		heading(`mailctl-${name}`, version),
		'.SH NAME',
		`${roff(`mailctl-${name}`)} \\- ${roff(summary)}`,
		...body,
		'.SH EXIT STATUS',
		roff('mailctl(1) has all exit codes.'),
		'.SH SEE ALSO',
		'.BR mailctl (1)',
	);
	return { file: `mailctl-${name}.1`, text };
}

function groupLines(group: CommandGroup, path: readonly string[]): string[] {
	return [
		...(group.self === undefined ? [] : commandLines(group.self, path)),
		...visibleIn(group).flatMap((one) =>
			'kind' in one ? commandLines(one, [...path, one.name]) : groupLines(one, [...path, one.name]),
		),
	];
}

function commandLines(command: Command, path: readonly string[]): string[] {
	const { args, options, output, exits = [], examples = [], aliases = [] } = command;
	const given = Object.entries(options).filter(([, { hidden }]) => hidden !== true);
	const words = `mailctl ${path.join(' ')}`;
	return [
		`.SH ${quoted(words.toUpperCase())}`,
		roff(sentence(command.summary)),
		...(command.description === undefined ? [] : ['.PP', roff(command.description)]),
		'.PP',
		`.B ${quoted(words)}`,
		roff(tail(command)),
		...(aliases.length === 0 ? [] : ['.PP', roff(`Aliases: ${aliases.join(', ')}`)]),
		...args.flatMap((arg) => term(argWord(arg), arg.summary)),
		...given.flatMap(([key, spec]) => term(optionLabel(key, spec).trim(), optionSummary(spec))),
		...(output === undefined ? [] : ['.PP', roff(`With -o json: ${output}`)]),
		...exits.flatMap((code) => term(`exit ${code}`, exitMeanings[code])),
		...(examples.length === 0 ? [] : ['.PP', 'Examples:', '.PP', '.EX', ...examples.map(roff), '.EE']),
	].filter((line) => line !== '');
}

function heading(name: string, version: string): string {
	return `.TH ${quoted(name.toUpperCase())} 1 "" ${quoted(`mailctl ${version}`)} "mailctl manual"`;
}

function term(left: string, right: string): string[] {
	return ['.TP', `.B ${quoted(left)}`, roff(right)];
}

function sentence(text: string): string {
	return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

function quoted(text: string): string {
	return `"${roff(text).replaceAll('"', '\\(dq')}"`;
}

function roff(text: string): string {
	return text
		.replaceAll('\\', '\\e')
		.replaceAll('-', '\\-')
		.replace(/^(?=[.'])/gm, '\\&');
}

function lines(...all: readonly string[]): string {
	return `${all.join('\n')}\n`;
}
