import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { programPath } from '../support/cli.js';
import { runProgram } from '../support/run-program.js';

const folder = mkdtempSync(join(tmpdir(), 'mailctl-pipes-'));
const env = {
	PATH: process.env['PATH'] ?? '',
	HOME: folder,
	TERM: 'dumb',
	MAILCTL_DB: join(folder, 'news.db'),
	NODE: process.execPath,
	P: programPath,
};

function shell(script: string, more: { input?: string } = {}) {
	const defined = `mailctl() { "$NODE" "$P" "$@"; }; cd "$HOME"; ${script}`;
	const { stdout, stderr, status } = runProgram('bash', ['-c', defined], { env, ...more });
	return { stdout, stderr, status };
}

const rows = 2_000;

beforeAll(() => {
	const people = Array.from({ length: rows }, (_, at) => `p${at}@example.com,Person ${at}`);
	writeFileSync(join(folder, 'people.csv'), `email,name\n${people.join('\n')}\n`);
	const made = shell(
		'mailctl engine init -q --sender news@example.com && ' +
			'mailctl lists create -q --name Readers --email-reason r && ' +
			'mailctl subscribers import -q people.csv -l Readers',
	);
	expect({ status: made.status, stderr: made.stderr }).toEqual({ status: 0, stderr: '' });
});

it('a command ends with 1 if Node.js accepts its output but never writes it', () => {
	const never = join(folder, 'never.cjs');
	writeFileSync(never, 'process.stdout.write = () => true;');
	expect(shell(`NODE_OPTIONS='--require=${never}' mailctl lists list`)).toMatchObject({
		status: 1,
		stdout: '',
	});
});

describe('a command that writes to a pipe', () => {
	it.each([
		['-o json | head -c 2', '[\n'],
		['-o csv | head -1', 'id,email,name'],
		['| head -1', '1\tp0@example.com'],
		['-o markdown | head -c 1', '|'],
	])('ends with 0 and no message if the reader closes the pipe early: %s', (rest, start) => {
		const { stdout, stderr } = shell(
			`mailctl subscribers list -l Readers --all ${rest}; echo "code \${PIPESTATUS[0]}" >&2`,
		);
		expect({ start: stdout.slice(0, start.length), stderr }).toEqual({ start, stderr: 'code 0\n' });
	});

	it('writes every byte of a large document', () => {
		const { stdout } = shell('mailctl subscribers list -l Readers -o json | cat');
		expect(stdout.length).toBeGreaterThan(8 * 64 * 1024);
		const parsed = JSON.parse(stdout) as { email: string }[];
		expect([parsed.length, parsed.at(-1)?.email]).toEqual([rows, `p${rows - 1}@example.com`]);
	});

	it('writes every line to a slow reader', () => {
		const slow = `"$NODE" -e 'process.stdin.pause(); setTimeout(() => process.stdin.pipe(process.stdout), 500)'`;
		expect(shell(`mailctl subscribers list -l Readers -o ndjson | ${slow} | wc -l`).stdout.trim()).toBe(
			`${rows}`,
		);
	});
});

it('a command works with a closed standard input', () => {
	expect(shell('mailctl lists list --fields name <&-')).toEqual({
		stdout: 'Readers\n',
		stderr: '',
		status: 0,
	});
	const { status, stderr } = shell('mailctl lists create <&-');
	expect({ status, first: stderr.split('\n')[0]?.slice(0, 21) }).toEqual({
		status: 2,
		first: 'error: missing --name',
	});
});

it('a command with a closed standard output ends without a message', () => {
	expect(shell('mailctl lists list >&-; echo "code $?" >&2').stderr).toBe('code 0\n');
});

it('a command whose output goes to a full disk ends with 74 and one clear error', () => {
	const { stderr } = shell('mailctl subscribers list -l Readers > /dev/full; echo "code $?" >&2');
	expect(stderr.split('\n')).toEqual([
		'error: cannot write to standard output: no space is left on the disk',
		'hint: free some space, or write the output to another disk',
		'code 74',
		'',
	]);
});
