// The picture of the demo in the README is drawn from what the built program prints.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { escapeHtml } from '../../src/api/quote.js';
import { isBuilt, programPath } from '../support/cli.js';
import { moment } from '../support/golden/program.js';
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

interface TerminalPicture {
	command: string;
	/** Plain text; no line is wider than `columns`. */
	output: string;
	columns: number;
}

const cell = { width: 8.4, height: 19 };
const margin = 16;
const colors = { back: '#0d1117', text: '#e6edf3', prompt: '#7ee787', quiet: '#9198a1' };

/** As SVG that pages of code hosts show. */
function drawTerminal({ command, output, columns }: TerminalPicture): string {
	const printed = output.replace(/\n+$/, '').split('\n');
	const lines = [{ text: `$ ${command}`, color: colors.prompt }, ...printed.map(toLine)];
	const width = Math.round(columns * cell.width + 2 * margin);
	const height = lines.length * cell.height + 2 * margin;
	const texts = lines.map(({ text, color }, index) => {
		const y = margin + (index + 0.75) * cell.height;
		return text === ''
			? []
			: [`<text x="${margin}" y="${y}" fill="${color}">${escapeHtml(text).replaceAll(' ', '\u00a0')}</text>`];
	});
	return `${[
		`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(command)} in a terminal">`,
		`<rect width="100%" height="100%" rx="8" fill="${colors.back}"/>`,
		'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">',
		...texts.flat(),
		'</g>',
		'</svg>',
	].join('\n')}\n`;
}

function toLine(text: string): { text: string; color: string } {
	return { text: text.trimEnd(), color: text.startsWith('  ') ? colors.quiet : colors.text };
}
