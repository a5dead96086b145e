import { describe, expect, it } from 'vitest';
import type { AcceptCounts, Recipient } from '../../src/api/campaigns.js';
import type { Ack } from '../../src/api/capabilities.js';
import {
	campaignColumns,
	maxRowsBytes,
	misnamedVariables,
	requestRows,
	stageRows,
	toRecipient,
} from '../../src/jobs/campaigns.js';
import type { Line } from '../../src/tables/read-lines.js';

function fakeSink(position = 0, onPut: (first: number) => void = () => {}) {
	const batches: { first: number; count: number; bytes: number }[] = [];
	const kept: string[] = [];
	let completeAt: number | null = null;
	return {
		batches,
		kept,
		completeAt: () => completeAt,
		put: async (first: number, rows: readonly Recipient[]): Promise<Ack<AcceptCounts>> => {
			expect(first).toBe(position + kept.length);
			batches.push({ first, count: rows.length, bytes: Buffer.byteLength(JSON.stringify(rows)) });
			kept.push(...rows.map(({ to }) => to));
			onPut(first);
			return {
				position: first + rows.length,
				counts: { staged: rows.length, suppressed: 0, rejected: 0 },
				rejects: [],
			};
		},
		complete: async (at: number) => {
			completeAt = at;
		},
	};
}

async function* people(count: number, onRow: (row: number) => void = () => {}): AsyncGenerator<Recipient> {
	for (let row = 0; row < count; row += 1) {
		onRow(row);
		yield { to: `r${row}`, line: row + 2 };
	}
}

describe('the staging of rows', () => {
	it('sends the rows in batches, and then reports that the source has ended', async () => {
		const sink = fakeSink();
		const seen: number[] = [];
		await stageRows({
			session: { id: 'm', position: 0 },
			rows: people(5),
			sink,
			batchRows: 2,
			onProgress: (position) => seen.push(position),
		});
		expect(sink.batches.map(({ first, count }) => [first, count])).toEqual([
			[0, 2],
			[2, 2],
			[4, 1],
		]);
		expect([seen, sink.completeAt()]).toEqual([[0, 2, 4, 5], 5]);
	});

	it('continues after the acknowledged rows, and reports the end only after the last row', async () => {
		const sink = fakeSink(3);
		await stageRows({ session: { id: 'm', position: 3 }, rows: people(5), sink });
		expect([sink.kept, sink.completeAt()]).toEqual([['r3', 'r4'], 5]);
		const again = fakeSink(5);
		await stageRows({ session: { id: 'm', position: 5 }, rows: people(5), sink: again });
		expect([again.kept, again.completeAt()]).toEqual([[], 5]);
	});

	it('limits a batch to 4 MiB, and memory to one batch', async () => {
		let read = 0;
		let put = 0;
		let most = 0;
		const sink = fakeSink(0, () => {
			put = sink.kept.length;
		});
		async function* large(): AsyncGenerator<Recipient> {
			for (; read < 24; read += 1) {
				most = Math.max(most, read - put);
				yield { to: `r${read}`, context: { text: 'ü'.repeat(250_000) } };
			}
		}
		await stageRows({ session: { id: 'm', position: 0 }, rows: large(), sink });
		expect(sink.kept).toHaveLength(24);
		expect(Math.max(...sink.batches.map(({ bytes }) => bytes))).toBeLessThanOrEqual(maxRowsBytes);
		expect(most).toBeLessThanOrEqual(9);
	});

	it('stops after the current batch if it is interrupted', async () => {
		const interrupts = new AbortController();
		const reason = new Error('interrupted');
		const sink = fakeSink(0, () => interrupts.abort(reason));
		const job = { session: { id: 'm', position: 0 }, rows: people(9), sink, batchRows: 2 };
		await expect(stageRows({ ...job, signal: interrupts.signal })).rejects.toBe(reason);
		expect([sink.kept, sink.completeAt()]).toEqual([['r0', 'r1'], null]);
	});
});

const header = ['email', 'Имя', 'First Name', 'city'];

function found(text: string) {
	const result = campaignColumns(header, []);
	if (result.kind === 'refused') throw new Error('the header can be used');
	return misnamedVariables([text], header, result.columns).map(({ written, column, variable }) => [
		...[written, column, variable],
	]);
}

it('a variable can consist of several columns that --map joins', () => {
	const result = campaignColumns(['email', 'Vorname', 'Nachname'], ['Vorname+Nachname=name']);
	expect(result).toMatchObject({
		kind: 'columns',
		columns: {
			email: 0,
			variables: [
				{ name: 'name', index: 1, joined: [2] },
				{ name: 'Vorname', index: 1 },
				{ name: 'Nachname', index: 2 },
			],
		},
	});
	if (result.kind === 'refused') throw new Error('the header can be used');
	const contextOf = (cells: string[]) => toRecipient({ kind: 'row', line: 2, cells }, result.columns);
	expect(contextOf(['kurz@example.com', '', 'Kurz'])).toMatchObject({ context: { name: 'Kurz' } });
	expect(contextOf(['ann@example.com', ' Ann ', 'Lee'])).toMatchObject({ context: { name: 'Ann Lee' } });
});

it('a joined column keeps its own variable, unless --map also maps or excludes the column', () => {
	const named = (map: string[], columns = ['email', 'First', 'Last name']) => {
		const result = campaignColumns(columns, map);
		if (result.kind === 'refused') throw new Error('the header can be used');
		return result.columns.variables.map(({ name, index, joined = [] }) => [name, index, ...joined]);
	};
	const own = [
		['First', 1],
		['last_name', 2],
	];
	expect(named(['First+Last name=name'])).toEqual([['name', 1, 2], ...own]);
	expect(named(['First+Last name=name', 'Last name+First=sorted'])).toEqual([
		['name', 1, 2],
		['sorted', 2, 1],
		...own,
	]);
	expect(named(['First+Last name=name', 'First=given'])).toEqual([['given', 1], ['name', 1, 2], own[1]]);
	expect(named(['First+Last name=name', 'First=-'])).toEqual([['name', 1, 2], own[1]]);
	expect(named(['Name+Last=name'], ['email', 'Name', 'Last'])).toEqual([
		['name', 1, 2],
		['Last', 2],
	]);
});

describe('the search for column names in a text', () => {
	it.each([
		['Hello #Имя#!', [['Имя', 'Имя', 'imya']]],
		[
			'Hello #имя# and # ИМЯ #',
			[
				['имя', 'Имя', 'imya'],
				[' ИМЯ ', 'Имя', 'imya'],
			],
		],
		[
			'Hello #First Name|friend#, #first  name#',
			[
				['First Name', 'First Name', 'first_name'],
				['first  name', 'First Name', 'first_name'],
			],
		],
		[
			'#City# or #CITY#',
			[
				['City', 'city', 'city'],
				['CITY', 'city', 'city'],
			],
		],
		['#first_name# city #city#', []],
		['No. #5 in #Имя#', [['Имя', 'Имя', 'imya']]],
		['a { color: #fff } b { color: #000; } #city', []],
		['nothing', []],
	])('finds the column names that a user wrote in place of variables: %j', (text, expected) => {
		expect(found(text)).toEqual(expected);
	});
});

const columnsOf = (header: readonly string[], map: readonly string[] = []) => {
	const result = campaignColumns(header, map);
	if (result.kind === 'refused') return result.findings.map(({ code }) => code);
	const { email, variables, ignored } = result.columns;
	return { email, variables: variables.map(({ index, name }) => `${index}:${name}`), ignored };
};

describe('the columns of a campaign', () => {
	it.each([
		[['email', 'name'], [], { email: 0, variables: ['1:name'], ignored: [] }],
		[['First Name', 'E-Mail'], [], { email: 1, variables: ['0:first_name'], ignored: [] }],
		[
			['email', 'id', 'is_active', 'meta.city'],
			[],
			{ email: 0, variables: ['1:id', '2:is_active', '3:city'], ignored: [] },
		],
		[['email', 'Prénom', '价格'], [], { email: 0, variables: ['1:prenom'], ignored: ['价格'] }],
		[['who', 'Town'], ['who=email', 'Town=city'], { email: 0, variables: ['1:city'], ignored: [] }],
		[['email', 'secret'], ['secret=-'], { email: 0, variables: [], ignored: ['secret'] }],
		[
			['Email', 'Name', 'city'],
			[],
			{ email: 0, variables: ['0:Email', '1:name', '1:Name', '2:city'], ignored: [] },
		],
		[['EMAIL'], [], { email: 0, variables: ['0:EMAIL'], ignored: [] }],
		[['email', 'mail'], ['mail=mail'], { email: 0, variables: ['1:mail'], ignored: [] }],
		[['email', '_line', '_code'], [], { email: 0, variables: [], ignored: ['_line', '_code'] }],
	])('follow from the header %j and --map %j: %j', (header, map, expected) => {
		expect(columnsOf(header, map)).toEqual(expected);
	});

	it.each([
		[['name'], [], ['no_email']],
		[['email', 'city', 'city'], [], ['duplicate']],
		[['email', 'First Name', 'first_name'], [], ['same_target']],
		[['email', 'E-Mail'], [], ['same_target']],
		[['email', 'a'], ['b=c'], ['unknown_map_source']],
	])('are rejected for the header %j and --map %j: %j', (header, map, codes) => {
		expect(columnsOf(header, map)).toEqual(codes);
	});
});

describe('a row of a table', () => {
	const columns = { email: 1, variables: [{ index: 0, name: 'city' }], ignored: [] };

	it('becomes a recipient whose context contains even empty cells', () => {
		expect(toRecipient({ kind: 'row', line: 7, cells: ['', ' ann@example.com '] }, columns)).toEqual({
			to: 'ann@example.com',
			line: 7,
			context: { city: '' },
		});
	});

	it('that is unreadable or larger than a batch becomes a recipient with the reason for its refusal', () => {
		const bad = {
			kind: 'bad',
			line: 8,
			code: 'nul',
			error: 'a NUL',
			cells: ['x', 'bob@example.com'],
		} as const;
		expect(toRecipient(bad, columns)).toEqual({
			to: 'bob@example.com',
			line: 8,
			refused: { code: 'nul', error: 'a NUL' },
		});
		const large = { kind: 'row', line: 9, cells: ['x'.repeat(4_194_304), 'c@example.com'] } as const;
		expect(toRecipient(large, columns).refused?.code).toBe('row_too_long');
	});
});

describe('a line of a batch of send requests', () => {
	const read = async (...texts: (string | Buffer)[]) => {
		async function* lines(): AsyncGenerator<Line> {
			for (const [at, text] of texts.entries()) {
				const bytes = Buffer.from(text as string);
				yield { line: at + 1, bytes, length: bytes.length, isCut: false };
			}
		}
		const rows = [];
		for await (const row of requestRows(lines())) rows.push(row);
		return rows;
	};

	it('becomes its JSON, or the reason why it is invalid', async () => {
		expect(await read('{"to": ["a"]}', '[1]', '{', Buffer.from([0x22, 0xff, 0x22]))).toEqual([
			{ line: 1, request: { to: ['a'] } },
			{ line: 2, request: [1] },
			{ line: 3, request: null, refused: { code: 'bad_json', error: expect.any(String) } },
			{ line: 4, request: null, refused: { code: 'encoding', error: 'not UTF-8' } },
		]);
	});

	it('keeps the digits of its numbers', async () => {
		const line =
			'{"subject": 1.50, "context": {"n": 9007199254740993, "x": 5.0, "y": 7}, "list_id": 12.0, "other": [1e400]}';
		expect(await read(line)).toEqual([
			{
				line: 1,
				request: {
					subject: '1.5',
					context: { n: '9007199254740993', x: '5.0', y: 7 },
					list_id: 12,
					other: ['1e400'],
				},
			},
		]);
	});
});
