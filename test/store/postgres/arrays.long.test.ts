import fc from 'fast-check';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { arrayOf } from '../../../src/store/postgres/sql.js';
import { describePostgres } from '../../support/postgres.js';

describePostgres('rows sent as one array per column', (server) => {
	async function open() {
		const client = new pg.Client({ connectionString: await server.createDatabase() });
		await client.connect();
		onTestFinished(() => client.end());
		return async (
			type: 'BIGINT' | 'TEXT' | 'BYTEA',
			values: (string | number | bigint | null | Uint8Array)[],
		) => {
			const rows = values.map((value) => ['before', value]);
			const text = `SELECT value FROM unnest($1::${type}[]) WITH ORDINALITY AS given (value, n) ORDER BY n`;
			const answer = await client.query(text, [arrayOf(type, rows, 1)]);
			return answer.rows.map(({ value }) => value);
		};
	}

	it('can hold any text', async () => {
		const read = await open();
		const text = fc.option(fc.string({ unit: 'binary' }).map((one) => one.replaceAll('\0', '')));
		await fc.assert(
			fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 40 }), async (values) => {
				expect(await read('TEXT', values)).toEqual(values);
			}),
			{ numRuns: 50 },
		);
		expect(await read('TEXT', ['', 'NULL', 'a"b\\c', '{x,y}', '\ud800', 7])).toEqual([
			...['', 'NULL', 'a"b\\c', '{x,y}', '\ufffd', '7'],
		]);
	});

	it('can hold integers: up to 53 bits as a number, and up to 64 bits as a bigint or text', async () => {
		const read = await open();
		await fc.assert(
			fc.asyncProperty(fc.array(fc.option(fc.maxSafeInteger()), { minLength: 1 }), async (values) => {
				expect(await read('BIGINT', values)).toEqual(
					values.map((one) => (one === null ? null : String(one))),
				);
			}),
			{ numRuns: 50 },
		);
		expect(await read('BIGINT', [2n ** 63n - 1n, -(2n ** 63n), '-12'])).toEqual([
			...['9223372036854775807', '-9223372036854775808', '-12'],
		]);
		await expect(read('BIGINT', [1.5])).rejects.toThrow('1.5 is not a whole number');
		await expect(read('BIGINT', [2 ** 53])).rejects.toThrow(RangeError);
	});

	it('can hold bytes', async () => {
		const read = await open();
		const values = [new Uint8Array([0, 255, 1]), null, new Uint8Array()];
		expect(await read('BYTEA', values)).toEqual([Buffer.from([0, 255, 1]), null, Buffer.alloc(0)]);
	});
});
