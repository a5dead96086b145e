import { it } from 'vitest';
import { runCall } from '../support/golden/program.js';
import { blockOf, expectGolden } from '../support/golden/record.js';

const run = (argv: readonly string[], columns?: number) =>
	runCall({ argv, env: { TERM: 'xterm', HOME: '/nowhere' }, ...(columns !== undefined && { columns }) });

it.each([
	80, 120,
])('the help of every command, group and topic matches the golden at %i columns', async (columns) => {
	const { stdout } = await run(['commands', '-o', 'json']);
	const commands = (JSON.parse(stdout) as { command: string }[]).map(({ command }) => command.split(' '));
	const groups = commands.flatMap((words) => words.slice(1).map((_, at) => words.slice(0, at + 1)));
	const { stderr } = await run(['help', 'nothing']);
	const topics = (/topics: (.*)/.exec(stderr)?.[1] ?? '').split(', ');
	const calls = [
		['--help'],
		...unique([...groups, ...commands]).map((words) => [...words, '--help']),
		...topics.map((topic) => ['help', topic]),
	];
	const blocks: string[] = [];
	for (const argv of calls) blocks.push(blockOf(`mailctl ${argv.join(' ')}`, await run(argv, columns)));
	await expectGolden(`help-${columns}.txt`, blocks.join('\n'));
});

it('the table of all commands matches the golden', async () => {
	const { stdout } = await run(['commands', '-o', 'json']);
	await expectGolden('commands.json', stdout);
});

function unique(paths: readonly (readonly string[])[]): string[][] {
	return [...new Set(paths.map((words) => words.join(' ')))].sort().map((path) => path.split(' '));
}
