/** JSON on a terminal escapes characters that move the cursor or reorder a line, but keeps their values. */
import { expect, it } from 'vitest';
import { makeProject } from '../../support/project.js';

const name = 'A\x9b31mnn \u202egnp.exe\u200b é日';

it.each([
	['json', ['lists', 'list']],
	['json', ['lists', 'get', '1']],
	['ndjson', ['lists', 'list']],
	['json', ['lists', 'list', '--query', '[]']],
	['ndjson', ['lists', 'list', '--query', '[]']],
])('the %s of the command %j is escaped on a terminal and parses to the same value', async (format, words) => {
	const project = await makeProject();
	await project.run(['lists', 'create', '--name', name, '--email-reason', 'r']);
	const { stdout } = await project.run([...words, '-o', format], { columns: 80 });
	expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e]/);
	expect(stdout).toContain('A\\u009b31mnn \\u202egnp.exe\\u200b é日');
	expect([JSON.parse(stdout)].flat()[0]).toMatchObject({ name });
	// A pipe gets the unescaped characters.
	expect((await project.run([...words, '-o', format])).stdout).toContain(name);
});

it('an error as JSON is escaped even if stderr is not a terminal', async () => {
	const project = await makeProject();
	const { stderr } = await project.run(['lists', 'get', name, '-o', 'json']);
	expect(stderr).toContain('A\\u009b31mnn \\u202egnp.exe');
	expect(JSON.parse(stderr).error.message).toContain(name);
});
