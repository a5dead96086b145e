import { type Command, type CommandGroup, type TreeEntry, visibleIn } from './command.js';
import { exitMeanings } from './exit.js';
import { environmentRows, globalSections, purpose, sectionsOf, tail } from './help.js';

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
		...globalSections().flatMap(sectionLines),
		'.SH ENVIRONMENT',
		...environmentRows().flatMap(([names, option]) => term(names, option)),
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
	const { summary, description } = command;
	const words = `mailctl ${path.join(' ')}`;
	return [
		`.SH ${quoted(words.toUpperCase())}`,
		roff(sentence(summary)),
		...(description === undefined ? [] : ['.PP', roff(description)]),
		'.PP',
		`.B ${quoted(words)}`,
		roff(tail(command)),
		...sectionsOf(command).flatMap(sectionLines),
	].filter((line) => line !== '');
}

function sectionLines([title, rows]: ReturnType<typeof sectionsOf>[number]): string[] {
	const lines = rows.flatMap((row) => (typeof row === 'string' ? [roff(row)] : term(row[0].trim(), row[1])));
	return [`.SS ${quoted(title)}`, ...(title === 'Examples' ? ['.EX', ...lines, '.EE'] : lines)];
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
