import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseJson, parseJsonBody } from '../../src/api/json.js';

const folder = join(process.env['MAILCTL_CORPORA'] ?? '../shared/corpora', 'json');
const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];

/** Bytes as a server reads them: strict UTF-8, or no text at all. */
function readText(name: string): string | null {
	try {
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
			readFileSync(join(folder, name)),
		);
	} catch {
		return null;
	}
}

describe.skipIf(files.length === 0)('the JSON test suite', () => {
	test.each(files.filter((name) => name.startsWith('y_')))('%s parses', (name) => {
		expect(parseJsonBody(readText(name) ?? '').kind).toBe('valid');
	});
	test.each(files.filter((name) => name.startsWith('n_')))('%s does not', (name) => {
		const text = readText(name);
		if (text !== null) expect(parseJson(text).kind).toBe('invalid');
	});
	test.each(files.filter((name) => name.startsWith('i_')))('%s gets an answer', (name) => {
		expect(['valid', 'invalid']).toContain(parseJson(readText(name) ?? '').kind);
	});
});

describe('parsing JSON', () => {
	test.each([
		['{', 'syntax'],
		[`${'['.repeat(33)}${']'.repeat(33)}`, 'too_deep'],
		[`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, 'too_deep'],
		['["\\u0000"]', 'null_characters_not_allowed'],
		['{"\\u0000": 1}', 'null_characters_not_allowed'],
		['{"a": ["\\ud83d"]}', 'surrogate_characters_not_allowed'],
	])('refuses %.40s', (text, code) => expect(parseJson(text)).toMatchObject({ kind: 'invalid', code }));

	test('takes 32 levels', () => {
		expect(parseJson(`${'['.repeat(32)}${']'.repeat(32)}`).kind).toBe('valid');
	});
});
