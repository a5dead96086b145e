import { fitLines } from '../render/wrapping.js';
import { type Command, type CommandGroup, loadNode, type TreeEntry, visibleIn } from './command.js';
import { globalHelp, nodeHelp, purpose, rootHelp } from './help.js';
import { topicText } from './topics.js';

interface ManPage {
	file: string;
	text: string;
}

export async function manPages(entries: readonly TreeEntry[], version: string): Promise<ManPage[]> {
	const main = [
		['mailctl', rootHelp(entries)],
		['global options', globalHelp()],
		['exit status', topicText('exit-codes')],
		['environment', topicText('environment')],
	] as const;
	const pages = entries.map(async (entry) => {
		const { name, summary } = entry;
		const helps = helpsOf(await loadNode(entry), [name]);
		return pageOf(`mailctl-${name}`, { summary, version, parts: [...helps, ['see also', 'mailctl(1)']] });
	});
	return Promise.all([pageOf('mailctl', { summary: purpose, version, parts: main }), ...pages]);
}

type Part = readonly [title: string, text: string];

function helpsOf(node: Command | CommandGroup, path: readonly string[]): Part[] {
	const below = 'commands' in node ? visibleIn(node) : [];
	const help: Part = [`mailctl ${path.join(' ')}`, nodeHelp(node, path)];
	return [help, ...below.flatMap((one) => helpsOf(one, [...path, one.name]))];
}

/** Fits a terminal of 80 columns, because manual pages are indented by seven. */
const width = 73;

async function pageOf(
	name: string,
	{ summary, version, parts }: { summary: string; version: string; parts: readonly Part[] },
): Promise<ManPage> {
	const lines = [
		`.TH "${name.toUpperCase()}" 1 "" "mailctl ${version}" "mailctl manual"`,
		'.SH NAME',
		`${roff(name)} \\- ${roff(summary)}`,
	];
	for (const [title, text] of parts)
		lines.push(
			`.SH "${roff(title.toUpperCase())}"`,
			'.EX',
			roff(await fitLines(text.trimEnd(), width)),
			'.EE',
		);
	return { file: `${name}.1`, text: `${lines.join('\n')}\n` };
}

function roff(text: string): string {
	return text
		.replaceAll('\\', '\\e')
		.replaceAll('-', '\\-')
		.replace(/^(?=[.'])/gm, '\\&');
}
