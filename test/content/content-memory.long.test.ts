// What a compiled content is counted as is what it holds: measured in a process of its own, behind a full collection.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { beforeAll, expect, it } from 'vitest';
import { runProgram } from '../support/run-program.js';

let program = '';

beforeAll(() => {
	program = join(mkdtempSync(join(tmpdir(), 'mailctl-held-')), 'held.mjs');
	buildSync({
		entryPoints: [fileURLToPath(new URL('../support/held-program.ts', import.meta.url))],
		outfile: program,
		bundle: true,
		platform: 'node',
		format: 'esm',
		banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
	});
});

it.each([
	['order', 200],
	['plain', 1000],
	['links', 60],
	['variables', 60],
	['cyrillic', 100],
	['constant', 200],
	['large', 5],
])('of contents of the kind "%s", between two thirds and the double', (kind, count) => {
	const { status, stdout, stderr } = runProgram(process.execPath, [
		'--expose-gc',
		program,
		kind,
		String(count),
	]);
	expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
	const { counted, held } = JSON.parse(stdout) as { counted: number; held: number };
	const ratio = counted / held;
	expect(ratio, `${counted / count} counted of ${held / count} bytes each`).toBeGreaterThan(0.67);
	expect(ratio, `${counted / count} counted of ${held / count} bytes each`).toBeLessThan(2);
});
