// The picture of the demo in the README is drawn from what the built program prints.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt, programPath } from '../support/cli.js';
import { moment } from '../support/golden/program.js';
import { drawTerminal } from '../support/golden/terminal-picture.js';
import { runProgram } from '../support/run-program.js';

const columns = 96;
/** The picture ends where the report goes on with a line a day. */
const shown = /^[\s\S]*?hard bounces.*\n/;

describe.skipIf(!isBuilt)('the picture of the demo', () => {
	let home: string;
	beforeAll(async () => {
		home = await mkdtemp(join(tmpdir(), 'mailctl-picture-'));
	});
	afterAll(async () => {
		await rm(home, { recursive: true });
	});

	it('is what the demo prints', async () => {
		const env = {
			PATH: process.env['PATH'],
			HOME: home,
			COLUMNS: String(columns),
			SOURCE_DATE_EPOCH: moment,
		};
		const { stdout, status } = runProgram(
			'sh',
			['-c', `"$0" "$1" demo -o table 2>&1`, process.execPath, programPath],
			{ env },
		);
		expect(status).toBe(0);
		const output = (shown.exec(stdout)?.[0] ?? '')
			.replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:8080')
			.replaceAll(/\/u\/[\w-]+/g, '/u/…');
		expect(output).toContain('sent          1,000');
		const picture = drawTerminal({ command: 'mailctl demo', output, columns });
		await expect(picture).toMatchFileSnapshot(join(import.meta.dirname, '../../docs/demo.svg'));
	});
});
