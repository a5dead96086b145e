import { describe, expect, it } from 'vitest';
import { shownUrl, withoutSecrets } from '../../src/api/quote.js';

const gone = '********';

describe('the filter for secrets in URLs', () => {
	it.each([
		['no https://tok3n@hooks.example.com/in here', `no https://${gone}@hooks.example.com/in here`],
		['https://ann:pw@h/x, http://bob@i/', `https://ann:${gone}@h/x, http://${gone}@i/`],
		['ftp://tok3n@h/', `ftp://${gone}@h/`],
		['"https://h/a?token=abc&page=2#x"', `"https://h/a?token=${gone}&page=2#x"`],
		['https://h/?api_key=a&accessToken=b&sig=c&x-auth=d&PASSWORD=e', expect.not.stringMatching(/=[a-e]\b/)],
		['{"url":"https://h/?secret=a\\"b"}', `{"url":"https://h/?secret=${gone}\\"b"}`],
		['postgres://user:pw@h/db?schema=p1', `postgres://user:${gone}@h/db?schema=p1`],
	])('hides the secrets and nothing else: %s', (text, shown) => {
		expect(withoutSecrets(text)).toEqual(shown);
	});

	it.each([
		'smtp://user@mail.example.com:587',
		'postgres://user@h/db?schema=p1',
		'https://h/?page=2&email=a@example.com',
		'mail ann@example.com: a key=value',
		'https://h/@handle?monkeys=3',
	])('leaves a text without secrets unchanged: %s', (text) => {
		expect(withoutSecrets(text)).toBe(text);
	});
});

describe('an error about a rejected URL', () => {
	it('hides the URL’s user and parameter values, but shows the parameter names', () => {
		expect(shownUrl('ftp://u@h/a?x=1&y=&z#f')).toBe(`ftp://${gone}@h/a?x=${gone}&y=${gone}&z#f`);
		expect(shownUrl('u:pw@h.example.com/a?id=abc')).toBe(`${gone}@h.example.com/a?id=${gone}`);
		expect(withoutSecrets(`(${shownUrl('https://u:p@h/?token=1')})`)).toBe(
			`(https://${gone}@h/?token=${gone})`,
		);
	});
});
