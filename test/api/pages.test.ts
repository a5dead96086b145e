import { describe, expect, test } from 'vitest';
import type { PageRequest } from '../../src/api/api.js';
import { iterate, iterateSlices, take } from '../../src/api/pages.js';
import type { Page } from '../../src/api/records.js';

function collection(count: number, size: number) {
	const asked: PageRequest[] = [];
	const read = async (request: PageRequest): Promise<Page<number>> => {
		asked.push(request);
		const page = request.page ?? 1;
		const results = Array.from({ length: count }, (_, i) => i).slice((page - 1) * size, page * size);
		const next = page * size < count ? `http://inside.example/x/?page=${page + 1}&q=1` : null;
		return { count, next, previous: null, results };
	};
	return { asked, read };
}

const all = (rows: AsyncIterable<unknown>) => take(rows, Number.POSITIVE_INFINITY);

describe('an iteration over a collection', () => {
	test('yields every row in order with pages of any size', async () => {
		const { read, asked } = collection(7, 3);
		expect(await all(iterate(read, { page_size: 1000 }))).toEqual([0, 1, 2, 3, 4, 5, 6]);
		expect(asked).toEqual([
			{ page_size: 1000 },
			{ page_size: 1000, page: 2, query: '?page=2&q=1' },
			{ page_size: 1000, page: 3, query: '?page=3&q=1' },
		]);
	});

	test('yields nothing for an empty collection', async () => {
		expect(await all(iterate(collection(0, 3).read))).toEqual([]);
	});

	test('reads no second page if the caller takes only the first page’s rows', async () => {
		const { read, asked } = collection(9, 3);
		expect(await take(iterate(read), 3)).toEqual([0, 1, 2]);
		expect(asked).toEqual([{}]);
	});

	test('follows a next link that has an offset instead of a page, and uses only the link’s query', async () => {
		const asked: PageRequest[] = [];
		const read = async (request: PageRequest): Promise<Page<number>> => {
			asked.push(request);
			const offset = Number(new URLSearchParams(request.query ?? '').get('offset') ?? '0');
			const next = offset < 4 ? `https://elsewhere.example/x/?limit=2&offset=${offset + 2}` : null;
			return { count: 6, next, previous: null, results: [offset, offset + 1] };
		};
		expect(await all(iterate(read))).toEqual([0, 1, 2, 3, 4, 5]);
		expect(asked).toEqual([{}, { query: '?limit=2&offset=2' }, { query: '?limit=2&offset=4' }]);
	});

	test.each<[string, (page: number) => { next: string | null; results: number[] }]>([
		['a next link to the same page', () => ({ next: '?page=1', results: [1] })],
		[
			'two pages whose next links form a loop',
			(page) => ({ next: `/x/?page=${page === 1 ? 2 : 1}`, results: [page] }),
		],
		['an empty page with a next link', (page) => ({ next: `?page=${page + 1}`, results: [] })],
		['the same rows on every page', (page) => ({ next: `?page=${page + 1}`, results: [1] })],
		['a link that does not name a page', () => ({ next: 'http://a/?page=x', results: [1] })],
		['a cursor that names itself', (page) => ({ next: '?cursor=abc', results: [page, Math.random()] })],
		['a link without a query', () => ({ next: 'http://a/', results: [1] })],
		['a malformed link', () => ({ next: 'http://[', results: [1] })],
	])('rejects %s', async (_, answer) => {
		const read = async ({ page = 1 }: PageRequest) => ({ count: 9, previous: null, ...answer(page) });
		await expect(all(iterate(read))).rejects.toMatchObject({ name: 'ApiError', code: 'bad_answer' });
	});
});

describe('an iteration over slices', () => {
	const read = (next: Readonly<Record<string, string | null>>) => async () => {
		const asked: string[] = [];
		const slices = iterateSlices('a', async (key) => {
			asked.push(key);
			return { next: next[key] ?? null };
		});
		for await (const _ of slices) if (asked.length > 10) break;
		return asked;
	};

	test('reads slices until a slice has no next key', async () => {
		expect(await read({ a: 'b', b: 'c', c: null })()).toEqual(['a', 'b', 'c']);
	});

	test('requests the next slice as soon as the next key is known', async () => {
		const asked: string[] = [];
		const next: Readonly<Record<string, string>> = { a: 'b', b: 'c', c: 'd' };
		const slices = iterateSlices<string, { next: string | null }>('a', async (key, onNext) => {
			asked.push(key);
			onNext(next[key] ?? null);
			await Promise.resolve();
			return { next: next[key] ?? null };
		});
		const seen = [];
		for await (const _ of slices) seen.push([...asked]);
		expect(seen).toEqual([
			['a', 'b'],
			['a', 'b', 'c'],
			['a', 'b', 'c', 'd'],
			['a', 'b', 'c', 'd'],
		]);
	});

	test('ignores the error of an early request whose key proves wrong, but throws every other error', async () => {
		const asked: string[] = [];
		const slices = iterateSlices<string, { next: string | null }>('a', async (key, onNext) => {
			asked.push(key);
			if (key === 'wrong') throw new Error('no such slice');
			onNext(key === 'a' ? 'wrong' : 'broken');
			if (key === 'broken') throw new Error('broken');
			return { next: key === 'a' ? 'b' : 'broken' };
		});
		const walked: unknown[] = [];
		const walk = async () => {
			for await (const { next } of slices) walked.push(next);
		};
		await expect(walk()).rejects.toThrow('broken');
		expect([asked, walked]).toEqual([
			['a', 'wrong', 'b', 'broken'],
			['b', 'broken'],
		]);
	});

	test.each([
		['itself', { a: 'a' }, 'a'],
		['an earlier key', { a: 'b', b: 'a' }, 'a'],
		['a key within the slice', { a: 'b', b: 'c', c: 'b' }, 'b'],
	])('throws an error if a next key leads back to %s', async (_, next, to) => {
		await expect(read(next)()).rejects.toMatchObject({
			code: 'bad_answer',
			message: `The pages of this collection do not end: the pages after ${to} lead back to it.`,
		});
	});
});
