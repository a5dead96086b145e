import { describe, expect, it } from 'vitest';
import { campaignColumns, requestRows, toRecipient } from '../../src/jobs/campaigns.js';
import type { Line } from '../../src/tables/read-lines.js';

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
	])('are mapped from %j with %j to %j', (header, map, expected) => {
		expect(columnsOf(header, map)).toEqual(expected);
	});

	it.each([
		[['name'], [], ['no_email']],
		[['email', 'city', 'city'], [], ['duplicate']],
		[['email', 'First Name', 'first_name'], [], ['same_target']],
		[['email', 'E-Mail'], [], ['same_target']],
		[['email', 'a'], ['b=c'], ['unknown_map_source']],
	])('are rejected for %j with %j: %j', (header, map, codes) => {
		expect(columnsOf(header, map)).toEqual(codes);
	});
});

describe('a row of a table', () => {
	const columns = { email: 1, variables: [{ index: 0, name: 'city' }], ignored: [] };

	it('is a recipient with its cells as context, including empty ones', () => {
		expect(toRecipient({ kind: 'row', line: 7, cells: ['', ' ann@example.com '] }, columns)).toEqual({
			to: 'ann@example.com',
			line: 7,
			context: { city: '' },
		});
	});

	it('that is unreadable or larger than a batch is kept with the reason', () => {
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

describe('a line of send requests', () => {
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

	it('is its JSON, or the reason why it is invalid', async () => {
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
