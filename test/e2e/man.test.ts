import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { flagOf } from '../../src/cli/frame/command.js';
import { globalOptions } from '../../src/cli/frame/globals.js';
import { tree } from '../../src/cli/tree.js';
import { programPath } from '../support/cli.js';
import { allCommands } from '../support/command-tree.js';
import { runProgram } from '../support/run-program.js';

const folder = join(programPath, '../../dist/man');
const groff = '/usr/bin/groff';

const read = (file: string) => readFileSync(join(folder, file), 'utf8').replaceAll('\\-', '-');

describe('the manual pages', () => {
	it('exist for the program and each command', () => {
		const names = tree.map(({ name }) => `mailctl-${name}.1`);
		expect(readdirSync(folder).sort()).toEqual(['mailctl.1', ...names].sort());
		const { man } = JSON.parse(readFileSync(join(folder, '../../package.json'), 'utf8'));
		expect(man.sort()).toEqual(['mailctl.1', ...names].map((file) => `./dist/man/${file}`).sort());
		const main = read('mailctl.1');
		for (const { summary } of tree) expect(main.replace(/\n +/g, ' ')).toContain(summary);
		for (const [key, { hidden }] of Object.entries(globalOptions))
			if (hidden !== true) expect(main).toContain(flagOf(key));
	});

	it('describe every command with its options', async () => {
		for (const { path, command } of await allCommands()) {
			if (command.hidden === true) continue;
			const page = read(`mailctl-${path.split(' ')[0]}.1`);
			expect(page).toContain(`.SH "MAILCTL ${path.toUpperCase()}"`);
			for (const [key, { hidden }] of Object.entries(command.options))
				if (hidden !== true) expect(page).toContain(flagOf(key));
		}
	});

	it.runIf(existsSync(groff)).each(tree.map(({ name }) => name))('include a valid page for %s', (name) => {
		const words = [
			'-man',
			'-Tutf8',
			'-Kutf8',
			'-ww',
			'-rLL=80n',
			'-P-cbou',
			join(folder, `mailctl-${name}.1`),
		];
		const { status, stdout, stderr } = runProgram(groff, words);
		expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
		expect(stdout).toContain('NAME');
	});
});
