import { describe, expect, it } from 'vitest';
import { fitLines } from '../../../src/cli/render/wrap-help.js';

describe('help on a narrow terminal', () => {
	it('goes on under the column it is in', () => {
		expect(fitLines('      --list list  every active subscriber of this list, by name', 46)).toBe(
			['      --list list  every active subscriber of', '                   this list, by name'].join('\n'),
		);
	});

	it('puts the second column below where there is no room beside the first', () => {
		expect(fitLines('      --expect-count N         how many recipients there must be', 40)).toBe(
			['      --expect-count N', '        how many recipients there must', '        be'].join('\n'),
		);
	});

	it('keeps the margin of plain text, and words whole', () => {
		expect(fitLines('  one two three four\nshort', 12)).toBe('  one two\n  three four\nshort');
		expect(fitLines('averyveryverylongword', 10)).toBe('averyveryverylongword');
	});

	it('brings a line that stands far to the right back to the margin', () => {
		expect(fitLines(`${' '.repeat(38)}refuse variables without a value`, 40)).toBe(
			'        refuse variables without a value',
		);
	});

	it('leaves commands whole, so that they can be copied', () => {
		const example = '  mailctl send --from news@example.com --to ann@example.com';
		expect(fitLines(example, 30)).toBe(example);
	});
});
