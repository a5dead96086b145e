import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { column } from '../../../src/cli/render/columns.js';
import { card, table } from '../../../src/cli/render/table.js';
import { createTimes } from '../../../src/cli/render/times.js';
import { startCpuClock } from '../../support/cpu-clock.js';

interface Row {
	email: string;
	name: string;
}

const times = createTimes({ zone: () => 'UTC', clock: systemClock, isRead: false });
const layout = { width: 80, header: true, truncate: false, strong: (text: string) => text, times };
const columns = [column<Row, 'email'>('email', 'EMAIL'), column<Row, 'name'>('name', 'NAME')];

describe('a cell of 100,000 characters', () => {
	it.each([
		['blanks', ' '],
		['letters', 'a'],
		['ideographs', '語'],
		['letters and blanks', 'ж '],
	])('with %s is printed quickly in a table and on a card, with and without truncation', async (_, piece) => {
		const row = { email: 'a@example.com', name: `${piece.repeat(100_000 / piece.length)}.` };
		for (const truncate of [true, false]) {
			const cpuMs = startCpuClock();
			await table([row, row], columns, { ...layout, truncate });
			card(row, columns, { ...layout, truncate });
			expect(cpuMs()).toBeLessThan(5_000);
		}
	});
});

describe('a table of 20,000 rows', () => {
	const rows = Array.from({ length: 20_000 }, (_, at) => ({
		email: `p${at}@example.com`,
		name: `Person ${at}`,
	}));

	it('prints one header and keeps its column widths', async () => {
		const { text } = await table(rows, columns, layout);
		const [header, ...lines] = text.trimEnd().split('\n');
		expect(header).toBe('EMAIL               NAME');
		expect(lines).toEqual(rows.map(({ email, name }) => `${email.padEnd(18)}  ${name}`));
	});
});
