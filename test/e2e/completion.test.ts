/** Completion in the shells themselves; a shell that is missing skips its tests. */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { cli, isBuilt, makeHome, programPath } from '../support/cli.js';
import { isInstalled, runProgram } from '../support/run-program.js';

let home: string;

/** Runs a script in a shell that finds `mailctl`; what it prints. */
function inShell(shell: string, script: string): string[] {
	const env = { HOME: home, PATH: `${join(home, 'bin')}:${process.env['PATH']}`, TERM: 'dumb' };
	const { status, stdout, stderr } = runProgram(shell, [...(shell === 'zsh' ? ['-f'] : []), '-c', script], {
		env,
		cwd: home,
	});
	expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
	return stdout.split('\n').filter((line) => line !== '');
}

beforeAll(async () => {
	home = await makeHome();
	await mkdir(join(home, 'bin'));
	await symlink(programPath, join(home, 'bin/mailctl'));
	const run = (...argv: string[]) => cli([...argv, '-q'], { env: { HOME: home } });
	expect(await run('engine', 'init', '--sender', 'news@example.com')).toMatchObject({ code: 0 });
	expect(await run('lists', 'create', '--name', "Ann's $(letters)", '--email-reason', 'r')).toMatchObject({
		code: 0,
	});
	expect(await run('lists', 'create', '--name', 'Red \u001b[31m', '--email-reason', 'r')).toMatchObject({
		code: 0,
	});
});

describe.skipIf(!isBuilt)('completion', () => {
	it.skipIf(!isInstalled('bash'))('works in bash', () => {
		const lines = inShell(
			'bash',
			`source <(mailctl completion bash)
			try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _mailctl; printf '%s\\n' "\${COMPREPLY[*]}"; }
			try mailctl li
			try mailctl lists up
			try mailctl lists delete ''
			try mailctl send --list '"ann'
			try mailctl lists list --output = j
			try mailctl lists list -o m`,
		);
		expect(lines).toEqual([
			'lists',
			'update',
			"Ann\\'s\\ \\$\\(letters\\)",
			"Ann's $(letters)",
			'json',
			'markdown',
		]);
	});

	it.skipIf(!isInstalled('fish'))('works in fish', async () => {
		await writeFile(join(home, 'people.csv'), '');
		const lines = inShell(
			'fish',
			`mailctl completion fish | source
			complete -C 'mailctl li'
			complete -C 'mailctl lists delete '
			complete -C 'mailctl lists list --output=j'
			complete -C 'mailctl subscribers import peo'`,
		);
		expect(lines).toEqual(['lists\tmailing lists', "Ann's $(letters)", '--output=json', 'people.csv']);
	});

	it.skipIf(!isInstalled('zsh'))('works in zsh', () => {
		const lines = inShell(
			'zsh',
			`compdef() { : }; compadd() { print -l -- \${(P)@[-1]} }; _files() { print files }
			source <(mailctl completion zsh)
			try() { words=("$@"); CURRENT=$#; _mailctl }
			try mailctl li
			try mailctl lists delete ''
			try mailctl send --list "'ann"
			try mailctl subscribers import ''`,
		);
		expect(lines).toEqual(['lists', "Ann's $(letters)", "Ann's $(letters)", 'files']);
	});
});
