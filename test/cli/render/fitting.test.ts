import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { type Columns, column, selectColumns, selectKeys } from '../../../src/cli/render/columns.js';
import { card, table } from '../../../src/cli/render/table.js';
import { createTimes } from '../../../src/cli/render/times.js';
import { shorten, widthOf } from '../../../src/cli/render/width.js';

const times = createTimes({ zone: () => 'UTC', clock: systemClock, isRead: true });
const layout = { header: true, truncate: true, strong: (text: string) => text, times };

interface Row {
	id: string;
	to: string;
	subject: string;
	tag: string;
	state: string;
}

const columns: Columns<Row> = [
	column('id', 'ID', { isKept: 'id' }),
	column('to', 'TO', { isKept: 'address' }),
	column('subject', 'SUBJECT', { isOptional: true }),
	column('tag', 'TAG', { isOptional: true }),
	column('state', 'STATE'),
];

const row: Row = {
	id: '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f',
	to: 'ann@example.com',
	subject: 'Our newsletter of November, the second edition',
	tag: 'november-2026',
	state: 'sent',
};

const at = async (width: number, shown: Columns<Row> = columns) => table([row], shown, { ...layout, width });
const second = (text: string) => text.split('\n')[1];

describe('a table that is too wide', () => {
	it('first shortens texts in their middle', async () => {
		const { text, leftOut } = await at(100);
		expect(second(text)).toBe(
			'0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f  ann@example.com  Our newsletter …edition  november-2026  sent',
		);
		expect(leftOut).toEqual([]);
	});

	it('drops its widest optional columns if shortening is not enough, and lists the dropped headers', async () => {
		expect(await at(90)).toMatchObject({ leftOut: ['SUBJECT'] });
		expect(await at(73)).toMatchObject({ leftOut: ['SUBJECT', 'TAG'] });
		expect(second((await at(73)).text)).toBe('0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f  ann@example.com  sent');
	});

	it('shortens names like other texts, but keeps addresses whole', async () => {
		const named: Columns<Row> = [
			column('to', 'TO', { isKept: 'address' }),
			column('subject', 'NAME', { isKept: 'name' }),
			column('tag', 'TAG', { isOptional: true }),
		];
		const one = async (width: number) => {
			const { text, leftOut } = await at(width, named);
			return [second(text), leftOut];
		};
		expect(await one(70)).toEqual([
			'ann@example.com  Our newsletter of Novembe…cond edition  november-2026',
			[],
		]);
		expect(await one(50)).toEqual(['ann@example.com  Our newslett…ition  november-2026', []]);
		expect(await one(40)).toEqual(['ann@example.com  Our newsletter …edition', ['TAG']]);
		expect(await one(31)).toEqual(['ann@example.com  Our newsl…tion', ['TAG']]);
	});

	it('drops the column that still needs the most space after shortening', async () => {
		const optional: Columns<Row> = [
			column('id', 'ID', { isKept: 'id', isOptional: true }),
			column('to', 'TO', { isKept: 'address' }),
			column('subject', 'SUBJECT', { isOptional: true }),
		];
		const { text, leftOut } = await at(60, optional);
		expect([second(text), leftOut]).toEqual([
			'ann@example.com  Our newsletter of November, …second edition',
			['ID'],
		]);
	});

	it('shortens ids and addresses last', async () => {
		expect(second((await at(50)).text)).toBe('0b0e2b7c-6c3f-4d0…8c1d2e3f  ann@example.com  sent');
		expect(second((await at(37)).text)).toBe('0b0e2b7c-…2e3f  ann@examp….com  sent');
	});

	it('becomes cards with all columns and whole ids if it still does not fit', async () => {
		for (const width of [33, 10, 1]) {
			const { text, leftOut } = await at(width);
			expect(text).toContain(`ID       ${row.id}\n`);
			expect(text).toContain('TAG      ');
			expect(leftOut).toEqual([]);
		}
	});

	it('is printed whole with --no-truncate or if the width is unknown', async () => {
		const whole = await table([row], columns, { ...layout, truncate: false, width: 20 });
		expect(whole.text).toContain(row.subject);
		expect((await at(Number.POSITIVE_INFINITY)).text).toBe(whole.text);
	});

	it.each([40, 80, 120])('fits a terminal of %i columns, whatever the cells contain', async (width) => {
		const hostile = [
			'\x1b[31mred\x07',
			'日本語'.repeat(40),
			'👩‍👩‍👧'.repeat(30),
			'\u202eabc\u2066',
			'e\u0301'.repeat(90),
		];
		const rows = hostile.map((subject) => ({ ...row, subject, to: `${subject}@example.com` }));
		const { text } = await table(rows, columns, { ...layout, width });
		expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202a-\u202e\u2066-\u2069]/);
		if (text.startsWith('ID  ') && !text.startsWith('ID       ')) {
			for (const line of text.split('\n')) expect(widthOf(line)).toBeLessThanOrEqual(width);
		}
	});
});

describe('a shortened text', () => {
	it.each([
		['abcdefghijklmnopqrstuvwxyz', 13, 'abcdefgh…wxyz'],
		['abcdefghijklmnopqrstuvwxyz', 8, 'abcdefg…'],
		['日本語日本語日本語', 13, '日本語日…本語'],
		[`${'👩‍👩‍👧'.repeat(9)}.`, 13, `${'👩‍👩‍👧'.repeat(4)}…👩‍👩‍👧.`],
		[`${'x'.repeat(20)}${'e\u0301'.repeat(9)}`, 13, `xxxxxxxx…${'e\u0301'.repeat(4)}`],
		['abc', 13, 'abc'],
		['abc', 0, ''],
	])('of %s has at most %i cells', (text, cells, shown) => {
		expect(shorten(text, cells)).toBe(shown);
		expect(widthOf(shown)).toBeLessThanOrEqual(cells);
	});
});

describe('--fields', () => {
	const meta = [column<{ meta: Record<string, unknown> }, 'meta'>('meta', 'META')];
	const oslo = { meta: { City: 'Oslo', age: 7 } };

	it('can select a single key of the field meta', () => {
		const [city, other] = selectColumns(meta, ['meta.City', 'meta.__proto__']);
		expect([city?.header, city?.value(oslo), other?.value(oslo)]).toEqual(['CITY', 'Oslo', null]);
		expect(selectKeys(oslo, meta, ['meta.City', 'meta.town'])).toEqual({
			'meta.City': 'Oslo',
			'meta.town': null,
		});
		expect(() => selectColumns(meta, ['meta.'])).toThrow('unknown field "meta."');
	});
});

describe('a card', () => {
	it('prints times to the minute', () => {
		const made = { at: '2026-11-21T12:00:00.000000' };
		const shown = card(made, [column<typeof made, 'at'>('at', 'MADE', { time: 'recent' })], {
			...layout,
			width: 80,
		});
		expect(shown).toBe('MADE  2026-11-21 12:00\n\nTimes: UTC\n');
	});
});
