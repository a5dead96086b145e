import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseJson, parseJsonBody, withoutExactNumbers } from '../../src/api/json.js';
import { toText, typeName } from '../../src/api/schema/python.js';
import { startCpuClock } from '../support/cpu-clock.js';

const folder = join(process.env['MAILCTL_CORPORA'] ?? '../shared/corpora', 'json');
const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];

function readText(name: string): string | null {
	try {
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
			readFileSync(join(folder, name)),
		);
	} catch {
		return null;
	}
}

describe.skipIf(files.length === 0)('a file of the JSON test suite', () => {
	test.each(files.filter((name) => name.startsWith('y_')))('%s is accepted', (name) => {
		expect(parseJsonBody(readText(name) ?? '').kind).toBe('valid');
	});
	test.each(files.filter((name) => name.startsWith('n_')))('%s is rejected', (name) => {
		const text = readText(name);
		if (text !== null) expect(parseJson(text).kind).toBe('invalid');
	});
	test.each(files.filter((name) => name.startsWith('i_')))('causes no exception: %s', (name) => {
		expect(['valid', 'invalid']).toContain(parseJson(readText(name) ?? '').kind);
	});
});

describe('the JSON parser', () => {
	test.each([
		['{', 'syntax'],
		[`${'['.repeat(33)}${']'.repeat(33)}`, 'too_deep'],
		[`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, 'too_deep'],
		['["\\u0000"]', 'null_characters_not_allowed'],
		['{"\\u0000": 1}', 'null_characters_not_allowed'],
		['{"a": ["\\ud83d"]}', 'surrogate_characters_not_allowed'],
	])('rejects $0', (text, code) => expect(parseJson(text)).toMatchObject({ kind: 'invalid', code }));

	test('accepts 32 levels of nesting', () => {
		expect(parseJson(`${'['.repeat(32)}${']'.repeat(32)}`).kind).toBe('valid');
	});
});

describe('hostile JSON', () => {
	const patience = 2_000;
	const mib = 1024 * 1024;
	test.each([
		['brackets', '['.repeat(10 * mib)],
		['empty lists', `[${'[],'.repeat(3 * mib)}[]]`],
		['quotes', '"'.repeat(10 * mib)],
		['escapes', `"${'\\"'.repeat(5 * mib)}"`],
		['backslashes', `"${'\\'.repeat(10 * mib)}`],
		['minus signs', '-'.repeat(10 * mib)],
		['digits', '7'.repeat(10 * mib)],
		['points', '1.'.repeat(5 * mib)],
		['exponents', `[${'1e5,'.repeat(2 * mib)}0]`],
		['zeros', `[0.${'0'.repeat(9 * mib)}]`],
	])('is parsed or rejected quickly: 10 MiB of %s', (_, text) => {
		const cpuMs = startCpuClock();
		parseJsonBody(text, { numbers: 'exact', maxValues: 200_000 });
		expect(cpuMs()).toBeLessThan(patience);
	});
});

describe('an exact number', () => {
	const read = (text: string) => parseJsonBody(text, { numbers: 'exact' });
	test.each([
		['12345678901234567890', 'int', '12345678901234567890'],
		['-12345678901234567890', 'int', '-12345678901234567890'],
		['9007199254740993', 'int', '9007199254740993'],
		['-0', 'int', '0'],
		['5.0', 'float', '5.0'],
		['1.10', 'float', '1.1'],
		['-0.0', 'float', '-0.0'],
		['1e5', 'float', '100000.0'],
		['1E+16', 'float', '1e+16'],
		['1e-5', 'float', '1e-05'],
		['0.0001', 'float', '0.0001'],
		['0.00001234', 'float', '1.234e-05'],
		['123456789012345.5', 'float', '123456789012345.5'],
		['1.5', 'float', '1.5'],
		['0.1234567890123456789012', 'float', '0.1234567890123456789012'],
		['1e400', 'float', '1e400'],
	])('is read from %s with the type %s, and printed as %s', (text, kind, shown) => {
		const parsed = read(` [ ${text} ] `);
		const value = parsed.kind === 'valid' && Array.isArray(parsed.value) ? parsed.value[0] : null;
		expect(typeName(value)).toBe(kind);
		expect(toText(value)).toBe(shown);
	});

	test.each([
		'01',
		'1.',
		'.5',
		'1e',
		'-',
		'+1',
		'1.0.0',
		'1.0a',
		'{5.0: 1}',
		'{1e5 : 1}',
		'1.0 2.0',
		`${'9'.repeat(4301)}`,
	])('cannot be read from $0', (text) => expect(read(text).kind).toBe('invalid'));

	test('is converted to a plain number by withoutExactNumbers, which keeps strings and keys unchanged', () => {
		const text = '{"a":"1.0","b":[1,2.5,3.0],"1e5":"\\"1.0\\"","c":{"__proto__":1.0}}';
		const parsed = read(text);
		expect(parsed.kind === 'valid' && JSON.stringify(withoutExactNumbers(parsed.value))).toBe(
			'{"a":"1.0","b":[1,2.5,3],"1e5":"\\"1.0\\"","c":{"__proto__":1}}',
		);
	});
});
