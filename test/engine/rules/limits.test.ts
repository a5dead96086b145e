import { describe, expect, it } from 'vitest';
import {
	formatLimit,
	limitsOn,
	parseLimits,
	type SendLimit,
	whyNeverMet,
	whyTwice,
} from '../../../src/engine/rules/settings.js';

const second = 1_000_000;
const hour = 3_600 * second;

function parsed(scope: SendLimit['scope'], text: string): SendLimit[] {
	const result = parseLimits(scope, text);
	if (result.kind === 'error') throw new Error(result.message);
	return result.limits;
}

describe('sending limits', () => {
	it.each([
		['100/1m', 100, 60 * second],
		['5/s', 5, second],
		['1000/24h', 1000, 24 * hour],
		['7/31d', 7, 31 * 24 * hour],
	])('are parsed: %s', (text, count, window) => {
		expect(parsed('all', text)).toEqual([{ scope: 'all', domain: '', count, window }]);
	});

	it('can name several domains, which become lower-case ASCII', () => {
		expect(parsed('recipient', 'Gmail.com=100/1h,BÜCHER.example=2/s, *=10/s')).toEqual([
			{ scope: 'recipient', domain: 'gmail.com', count: 100, window: hour },
			{ scope: 'recipient', domain: 'xn--bcher-kva.example', count: 2, window: second },
			{ scope: 'recipient', domain: '*', count: 10, window: second },
		]);
	});

	it.each([
		['all', ''],
		['all', '0/1m'],
		['all', '100'],
		['all', '100/0s'],
		['all', '100/32d'],
		['all', 'example.com=1/s'],
		['recipient', '100/1m'],
		['recipient', 'gmail.com=100/1h, yahoo.com'],
		['sender', 'a b=1/s'],
	] as const)('of the scope %s are rejected: "%s"', (scope, text) => {
		expect(parseLimits(scope, text)).toMatchObject({
			kind: 'error',
			message: expect.stringContaining('such as'),
		});
	});

	it('are rejected if two of them have the same domain and period', () => {
		expect(whyTwice(parsed('recipient', 'gmail.com=100/1h, *=3/s, GMAIL.com=3/60m'))).toBe(
			'"gmail.com=100/h" and "gmail.com=3/h" have the same period; use one of them',
		);
		expect(whyTwice(parsed('all', '100/1h, 3/s'))).toBe(null);
		expect(whyTwice(parsed('recipient', 'gmail.com=100/1h, gmail.com=3/s, *=3/s'))).toBe(null);
	});

	it.each([
		['gmail=10/m', '"gmail=10/m": no address ends in @gmail'],
		['gmail.com=10/m, *.example.com=1/s', '"*.example.com=1/s": no address ends in @*.example.com'],
	])('that no address can match are rejected with a reason: %s', (text, why) => {
		expect(whyNeverMet(parsed('recipient', text))).toContain(why);
	});

	it.each([
		'localhost=1/s',
		'*=1/s',
		'bücher.example=1/s',
	])('are accepted if an address can match: %s', (text) => {
		expect(whyNeverMet(parsed('sender', text))).toBeNull();
	});

	it.each([
		['recipient', 'gmail.com=100/60m', 'gmail.com=100/h'],
		['recipient', '*=10/1s', '*=10/s'],
		['all', '100/90s', '100/90s'],
		['all', '1000/24h', '1000/d'],
	] as const)('are shown in a normal form: %s %s as %s', (scope, text, shown) => {
		expect(parsed(scope, text).map(formatLimit)).toEqual([shown]);
	});
});

describe('the limits that apply to a message', () => {
	const limits = [
		...parsed('all', '100/1m'),
		...parsed('sender', 'example.com=5/s'),
		...parsed('recipient', 'gmail.com=1/s, gmail.com=100/1h, *=10/s'),
	];
	const keys = (sender: string, recipient: string) =>
		limitsOn(limits, { sender, recipient }).map(({ key }) => key);

	it('include those for all mail and for the domains of its sender and recipient', () => {
		expect(keys('example.com', 'gmail.com')).toEqual([
			'all  60000000',
			'sender example.com 1000000',
			'recipient gmail.com 1000000',
			'recipient gmail.com 3600000000',
		]);
	});

	it('count each domain separately if the domain is covered only by *', () => {
		expect(keys('example.org', 'yahoo.com')).toEqual(['all  60000000', 'recipient yahoo.com 1000000']);
	});
});
