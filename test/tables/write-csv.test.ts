import { describe, expect, it } from 'vitest';
import { guardFormula } from '../../src/tables/write-csv.js';
import { startCpuClock } from '../support/cpu-clock.js';

describe('cells that could be formulas', () => {
	it.each([
		['=1+1', "'=1+1"],
		['+1', "'+1"],
		['-1', "'-1"],
		['@SUM(A1)', "'@SUM(A1)"],
		['\t=1', "'\t'=1"],
		['\r=1', "'\r'=1"],
		['\n=1', "'\n'=1"],
		['\nplain', "'\nplain"],
		['\uff1d1+1', "'\uff1d1+1"],
		['\uff0b1', "'\uff0b1"],
		['\uff0d1', "'\uff0d1"],
		['\uff20A1', "'\uff20A1"],
		['Ann;=1+1', "Ann;'=1+1"],
		['Ann;"=1+1"', `Ann;"'=1+1"`],
		['Ann; \uff1d1;@x', "Ann; '\uff1d1;'@x"],
		['Ann\n=1+1', "Ann\n'=1+1"],
	])('%j is written as %j', (cell, guarded) => expect(guardFormula(cell)).toBe(guarded));

	it.each([
		'',
		'Ann',
		'a=b',
		'ann@example.com',
		'Ann; Bob',
		'x; y=z',
		' = 1',
		'"quoted"',
		'two\nlines',
	])('%j is unchanged', (cell) => expect(guardFormula(cell)).toBe(cell));

	it('are checked in linear time', () => {
		for (const piece of [';', ';"', '\n', '\n"', '" ']) {
			const cpuMs = startCpuClock();
			guardFormula(`${piece.repeat(100_000)}=`);
			expect(cpuMs()).toBeLessThan(2_000);
		}
	});
});
