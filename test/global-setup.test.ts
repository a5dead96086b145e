import { mkdirSync, mkdtempSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { removeLeftovers } from './global-setup.js';
import { runProgram } from './support/run-program.js';

it('removeLeftovers removes a folder only if it is over an hour old and its test process has ended', () => {
	const parent = mkdtempSync(join(tmpdir(), 'mailctl-leftovers-'));
	const { pid } = runProgram('true', []);
	const make = (name: string) => {
		mkdirSync(join(parent, name, 'within'), { recursive: true });
		writeFileSync(join(parent, name, 'within', 'news.db'), '');
		const old = statSync(parent).mtimeMs / 1000 - 4_000;
		utimesSync(join(parent, name), old, old);
	};
	const gone = `mailctl-tests-${pid.toString(36)}-abcdef`;
	const others = [
		`mailctl-tests-${process.pid.toString(36)}-abcdef`,
		'mailctl-tests-abcdef',
		'news-1-abcdef',
	];
	for (const name of [gone, ...others]) make(name);
	removeLeftovers(parent, statSync(parent).mtimeMs - 1_000_000);
	expect(readdirSync(parent).sort()).toEqual([gone, ...others].sort());
	removeLeftovers(parent, statSync(parent).mtimeMs);
	expect(readdirSync(parent).sort()).toEqual([...others].sort());
});
