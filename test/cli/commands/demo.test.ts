import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cli, makeHome } from '../../support/cli.js';
import { shellWords } from '../../support/shell-words.js';

describe('mailctl demo', () => {
	it('runs all its steps and leaves nothing behind', async () => {
		const home = await makeHome();
		const run = await cli(['demo', '-o', 'json'], { env: { HOME: home, TMPDIR: home } });
		expect({ code: run.code, document: JSON.parse(run.stdout) }).toEqual({
			code: 0,
			document: {
				delivered: 1000,
				seconds: expect.any(Number),
				report: expect.objectContaining({ total: expect.objectContaining({ sent: 1000 }) }),
				commands: expect.arrayContaining(['mailctl subscribers import people.csv --list Readers']),
				kept: null,
			},
		});
		expect(await readdir(home)).toEqual([]);
	});

	it.each([40, 80])('shows a mail and a report, and fits its text into %i columns', async (columns) => {
		const { code, stdout } = await cli(['demo', '-q', '--no-color'], { columns });
		expect({ code, stdout }).toEqual({
			code: 0,
			stdout: expect.stringMatching(/One of the 1,000 mails that arrived:\s.*\nThe report:\n/s),
		});
		const lines = stdout.split('\n');
		// The demo does not break a word that is wider than the terminal.
		const long = lines.filter((line) => line.length >= columns + 1 && line.trim().includes(' '));
		expect(long).toEqual([]);
		const [, commands = ''] = stdout.split('The commands:\n');
		const [shown = ''] = commands.split('\n\n');
		expect(shown.replaceAll(/ \\\n +/g, ' ')).toContain(
			"  mailctl send --from 'News <news@example.com>' --list Readers --subject 'Good news for #city#' --html-file offer.html --yes --expect-count 1000",
		);
	});

	it('keeps its files in a new folder, and refuses a folder that is not empty', async () => {
		const home = await makeHome();
		const kept = join(home, "kept for Ann's team");
		const demo = await cli(['demo', '--keep', kept, '-q']);
		expect(demo.code).toBe(0);
		expect((await readdir(join(kept, 'mails'))).length).toBe(1000);
		const [, looks = ''] = demo.stdout.split('To explore the database:\n');
		const lines = looks.trimEnd().split('\n');
		expect(lines.map((line) => line.replace(/--db .*demo\.db'/, '--db DB'))).toEqual([
			'  mailctl --db DB subscribers list --list Readers',
			'  mailctl --db DB campaigns list',
			'  mailctl --db DB report',
		]);
		for (const line of lines) {
			const { code, stdout } = await cli(shellWords(line), { env: { HOME: home } });
			expect([code, stdout]).toEqual([0, expect.not.stringMatching(/^$/)]);
		}
		const full = join(home, 'full');
		await mkdir(full);
		await writeFile(join(full, 'mine'), '');
		expect(await cli(['demo', '--keep', full])).toEqual({
			code: 2,
			stdout: '',
			stderr: `error: --keep ${full}: the folder is not empty\n`,
		});
		expect(existsSync(join(full, 'demo.db'))).toBe(false);
	});
});
