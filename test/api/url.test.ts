import { describe, expect, it } from 'vitest';
import { canParseUrl } from '../../src/api/schema/url.js';

/** More than V8 waits for before it optimizes a call. */
const often = 50_000;

describe('whether a text is a URL', () => {
	it.each<[string, string | undefined, boolean]>([
		['https://example.com/', undefined, true],
		['https://bücher.example/größe?é#ü', undefined, true],
		['https://пример.example/', undefined, true],
		['größe', 'https://bücher.example/', true],
		['/x', 'https://example.com/', true],
		['größe', undefined, false],
		['/x', undefined, false],
		['http://[::zz]/ü', undefined, false],
		['', undefined, false],
	])('%s at %s is so however often it is asked: %s', (text, base, is) => {
		const others = new Set<number>();
		for (let at = 0; at < often; at += 1) if (canParseUrl(text, base) !== is) others.add(at);
		expect([...others].slice(0, 3)).toEqual([]);
	});
});
