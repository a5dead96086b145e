import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { beforeAll, describe, expect, it } from 'vitest';
import { syncTwin } from '../../scripts/sync-twin.mjs';
import { runProgram } from '../support/run-program.js';

describe('the process', () => {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-process-'));
	const program = join(folder, 'program.mjs');
	const env = { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: 'dumb' };

	beforeAll(async () => {
		symlinkSync(join(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'));
		await build({
			entryPoints: [join(import.meta.dirname, '../support/program.ts')],
			outfile: program,
			bundle: true,
			packages: 'external',
			external: ['*/connect.js'],
			format: 'esm',
			platform: 'node',
			define: { __VERSION__: '"1.2.3"' },
			plugins: [syncTwin],
		});
	});

	const shell = (script: string) =>
		runProgram('bash', ['-c', script], {
			env: { ...env, NODE: process.execPath, P: program },
		});

	it.each([
		['| head -c 10', '1\tList 1\t2'],
		['| head -1', '1\tList 1\t2\t1\t2026-11-01T10:00:00.000000Z\n'],
		['-o json | head -1', '[\n'],
		['-o ndjson | head -c 6', '{"id":'],
	])('exits with 0 and prints no error if the reader closes the pipe (%s)', (rest, expected) => {
		const { stdout, stderr } = shell(`"$NODE" "$P" lists list ${rest}; echo "code \${PIPESTATUS[0]}" >&2`);
		expect({ stdout, stderr }).toEqual({ stdout: expected, stderr: 'code 0\n' });
	});

	it('writes every row into a pipe, even if the rows exceed the pipe’s buffer', () => {
		expect(shell('"$NODE" "$P" lists list | wc -l').stdout.trim()).toBe('20000');
		expect(shell('"$NODE" "$P" lists list -o json | tail -c 4').stdout).toBe('}\n]\n');
	});

	it('keeps its exit code if stderr is closed', () => {
		expect(shell('"$NODE" "$P" lists get 99999 2>&-; echo $?').stdout).toBe('3\n');
		expect(shell('"$NODE" "$P" lists get 99999 2> >(true); echo $?').stdout).toBe('3\n');
	});

	it.each([
		['SIGINT', 130, 'interrupted'],
		['SIGTERM', 143, 'terminated'],
	] as const)('waits after %s until the command has stopped, and then exits with %i', async (signal, code, said) => {
		const child = spawn(process.execPath, [program, 'lists', 'list'], { env: { ...env, HANG: signal } });
		let stderr = '';
		child.stderr.on('data', (chunk) => {
			stderr += String(chunk);
			if (stderr === 'hanging\n') child.kill(signal);
		});
		const [ended] = await once(child, 'close');
		expect({ ended, stderr }).toEqual({ ended: code, stderr: `hanging\n${said}\n` });
	});
});
