import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { synchronous } from '../../scripts/sync-twin.mjs';
import { createCore } from '../../src/store/core/core.js';
import { createCore as createTwin } from '../../src/store/sqlite/core.js';

const root = join(import.meta.dirname, '../../src/store/core');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');

const texts = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g;

const declaredIn = (file: string) =>
	[...textOf(file).matchAll(/\basync function\*? (\w+)/g)].map(([, name = '']) => name);
const everywhere = new Set(files.flatMap(declaredIn));
const importedIn = (file: string) =>
	[...textOf(file).matchAll(/^import \{([^}]*)\} from '(\.[^']*)\.js'/gm)].flatMap(
		([, names = '', path = '']) =>
			files.includes(join(dirname(file), `${path}.ts`)) ? (names.match(/\w+/g) ?? []) : [],
	);

const asks = (name: string) =>
	name.startsWith('sql.') && !['sql.alone', 'sql.write', 'sql.writeAll', 'sql.writeEach'].includes(name);

describe('the synchronous twin of the operations', () => {
	it('equals the source without async and await', () => {
		const text = 'const row = (await sql.get(text)) ?? null; const one = async (x) => await f(await g(x));';
		expect(synchronous(text)).toBe('const row = (sql.get(text)) ?? null; const one = (x) => f(g(x));');
	});

	it('has synchronous operations where the source has asynchronous ones', () => {
		const isAsync = (operation: unknown) => String(operation).startsWith('async');
		const sql = { dialect: 'none' } as never;
		const operations = (core: object) => Object.values(core).map(isAsync);
		expect(operations(createTwin(sql))).not.toContain(true);
		expect(operations(createCore(sql))).toContain(true);
	});
});

describe.each(files)('%s', (file) => {
	// Comments may contain the words async and await.
	const code = textOf(file).replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');

	it('awaits only the database: it contains no Promise method, timer or for await', () => {
		expect(code).not.toMatch(
			/\bnew Promise\b|\bPromise\.|\.then\(|\.finally\(|for await|setTimeout|setImmediate/,
		);
	});

	it('awaits or returns every call of an asynchronous function', () => {
		const apart = code.replace(texts, "''");
		const asynchronous = new Set([
			...declaredIn(file),
			...importedIn(file).filter((name) => everywhere.has(name)),
		]);
		const lost = [
			...apart.matchAll(/(?<![.\w])(sql\.\w+|\w+)(?:<[^()=;]*>)?\((?![^()]*\): Promise<)/g),
		].filter(
			({ 1: name = '', index }) =>
				(asks(name) || asynchronous.has(name)) &&
				!/(?:\bawait|\breturn|=>|\bfunction)\s*$/.test(apart.slice(Math.max(0, index - 20), index)),
		);
		expect(lost.map(({ index }) => apart.slice(index, index + 60))).toEqual([]);
	});

	it('has no string with the word async or await', () => {
		const words = (code.match(texts) ?? []).map((text) => text.replace(/\$\{[^}]*\}/g, ''));
		expect(words.filter((text) => /\b(?:async|await)\s/.test(text))).toEqual([]);
	});

	it('passes no async callback to an array function', () => {
		expect(code).not.toMatch(
			/\.(?:map|filter|some|every|flatMap|forEach|find|findIndex|reduce|sort)\((?:async|\w+, async)\b/,
		);
	});
});
