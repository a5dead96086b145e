import iconv from 'iconv-lite';
import { beforeEach, expect, it } from 'vitest';
import { makeProject, type Project } from '../../support/project.js';

let project: Project;

beforeEach(async () => {
	project = await makeProject();
	await project.run(['engine', 'settings', 'set', 'smtp_url', 'smtp://mail.example.com']);
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
});

const verbs = [
	['subscribers import', (path: string) => ['subscribers', 'import', path, '-l', '1', '-n']],
	['suppressions import', (path: string) => ['suppressions', 'import', path, '--ignore-unknown', '-n']],
	[
		'send --csv',
		(path: string) => [
			'send',
			'--csv',
			path,
			'--from',
			'news@example.com',
			'--subject',
			's',
			'--text',
			'#name#',
			'-n',
		],
	],
] as const;

function polish(name: string): Promise<string> {
	return project.file('people.csv', iconv.encode(`email;name\na@example.com;${name}\n`, 'windows-1250'));
}

it.each(
	verbs,
)('%s prints its guess of the encoding even with --quiet, but does not guess with --encoding', async (_, words) => {
	const path = await polish('Władysław Mączyński');
	const told = await project.run([...words(path), '--quiet']);
	expect(told.stderr).toContain('people.csv: its encoding is probably windows-1250');
	const named = await project.run([...words(path), '--encoding', 'windows-1250']);
	expect(named.stderr).not.toContain('probably');
});

it.each(verbs)('%s exits with 2 and shows sample texts if several encodings fit', async (_, words) => {
	const path = await polish('Szűrte');
	const result = await project.run(words(path));
	expect(result.code).toBe(2);
	for (const text of [
		'windows-1250: a@example.com;Szűrte',
		'windows-1252: a@example.com;Szûrte',
		'--encoding',
	])
		expect(result.stderr).toContain(text);
});
