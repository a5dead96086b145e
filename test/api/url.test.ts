import { describe, expect, it } from 'vitest';
import { canParseUrl, isLoopback, isLoopbackUrl } from '../../src/api/schema/url.js';

/** V8 optimizes a function before this many calls, and the optimized code must give the same answers. */
const often = 50_000;

describe('the URL check', () => {
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
	])('of %s with the base %s returns %s in each of 50,000 calls', (text, base, is) => {
		const others = new Set<number>();
		for (let at = 0; at < often; at += 1) if (canParseUrl(text, base) !== is) others.add(at);
		expect([...others].slice(0, 3)).toEqual([]);
	});
});

it.each<[string, boolean]>([
	...['http://localhost', 'http://news.localhost:8080', 'https://127.9.9.9', 'http://2130706433'].map(
		(url): [string, boolean] => [url, true],
	),
	...['http://[::1]:8080', 'http://[::ffff:127.0.0.1]:8080', 'smtp://LocalHost:25'].map(
		(url): [string, boolean] => [url, true],
	),
	...['http://example.com', 'http://[::ffff:10.0.0.1]', 'http://127.0.0.1.example.com', 'localhost'].map(
		(url): [string, boolean] => [url, false],
	),
])('isLoopbackUrl(%j) is %s', (url, is) => {
	expect(isLoopbackUrl(url)).toBe(is);
});

it('an IPv6 address of this machine is recognized even without brackets', () => {
	expect(['::1', '::ffff:7f00:1', '::2'].map(isLoopback)).toEqual([true, true, false]);
});
