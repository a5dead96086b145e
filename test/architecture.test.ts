// Holds the imports of src/ to a table of which folder may import which.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../src');

/**
 * The layers of src/, from the lowest to the highest. A file imports from its own part and from lower layers,
 * never from another part of its layer. The composition root is the exception: lower files may import its
 * types, or load it lazily.
 */
const layers: readonly (readonly string[])[] = [
	['api'],
	['content', 'tables', 'engine/rules'],
	['store'],
	['engine', 'delivery'],
	['http', 'jobs'],
	['threads'],
	['cli'],
	['cli/connect'],
];

const seam = /^store\/(?!open|slices)[\w-]+\.ts$/;

/** The first row that matches a file decides. `own` = its own folder; `*` = everything. */
const table: readonly { files: RegExp; may: readonly (string | RegExp)[] }[] = [
	{ files: /^cli\/connect(\.ts|\/[\w-]+\.ts)$/, may: ['*'] },
	{ files: /^store\/open\.ts$/, may: [/^store\//, /^api\//] },
	{ files: /^api\//, may: [/^api\//] },
	{ files: /^content\//, may: [/^content\//, /^api\//] },
	{ files: /^store\/operations\.ts$/, may: [seam, /^store\/core\//, /^engine\/rules\//, /^api\//] },
	{
		files: seam,
		may: [/^api\//, seam, /^engine\/rules\//],
	},
	{
		files: /^store\/core\//,
		may: [/^store\/core\//, seam, /^api\//, /^engine\/rules\//],
	},
	{
		files: /^store\/(slices\.ts$|(sqlite|postgres)\/)/,
		may: [
			seam,
			/^store\/(slices\.ts$|(sqlite|postgres|core)\/)/,
			/^api\//,
			/^engine\/rules\//,
			// Before the store's upkeep deletes the body of a message, it reads the links to keep.
			/^content\/links\.ts$/,
		],
	},
	{ files: /^store\/move\//, may: [/^store\/move\//, seam, /^api\//] },
	{
		files: /^engine\/rules\//,
		may: [/^engine\/rules\//, /^api\//],
	},
	{
		files: /^engine\//,
		may: [/^engine\//, /^api\//, /^content\//, seam],
	},
	{
		files: /^delivery\//,
		may: [/^delivery\//, /^api\//, /^content\//, seam, /^engine\/rules\//],
	},
	{ files: /^tables\//, may: [/^tables\//, /^api\//] },
	{ files: /^jobs\//, may: [/^jobs\//, /^api\//, /^tables\//, /^engine\/rules\/import-rows\.ts$/] },
	{ files: /^http\/wire\.ts$/, may: [/^api\//] },
	{ files: /^http\/client\//, may: [/^http\/(client\/|wire\.ts$)/, /^api\//] },
	{ files: /^http\/(server|public)\//, may: [/^http\//, /^api\//, /^delivery\/tracking\//] },
	{
		files: /^threads\/table/,
		may: [/^threads\//, /^tables\//, /^jobs\/import-/, /^engine\/rules\/import-rows\.ts$/, /^api\//],
	},
	{
		files: /^threads\/re(?:port|aders)/,
		may: [/^threads\//, /^content\//, /^delivery\/bounces\//, /^api\//],
	},
	{ files: /^threads\/compos/, may: [/^threads\//, /^(delivery|content|store)\//, /^api\//] },
	{ files: /^threads\//, may: [/^threads\//, /^(content|store|tables)\//, /^api\//] },
	{
		files: /^cli\//,
		may: [
			/^cli\//,
			/^api\//,
			/^content\//,
			/^tables\//,
			/^jobs\//,
			/^store\/(queue|maintenance|operations|errors|moving|url)\.ts$/,
			// Dry runs, `subscribers list --where` and completion use the same rules as the engine.
			/^engine\/rules\/(campaign-rows|conditions|settings|subscribers)\.ts$/,
			// `api` and `smoke` read header names and the meaning of status codes.
			/^http\/wire\.ts$/,
		],
	},
];

interface Import {
	from: string;
	to: string;
	typeOnly: boolean;
	lazy: boolean;
}

const files = sourceFiles(root).map((path) => relative(root, path));
const imports = files.flatMap(importsOf);

describe('the project', () => {
	it('has more than 20 source files', () => {
		expect(files.length).toBeGreaterThan(20);
	});

	it('has only imports that the table of folders allows', () => {
		expect(imports.filter((one) => !allowed(one)).map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
	});

	it('imports nothing from a higher layer, but may import cli/connect lazily or for its types', () => {
		expect(imports.filter(isUpward).map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
		expect([...new Set(files.map(partOf))].sort()).toEqual(layers.flat().sort());
	});

	it('has a layer check that detects forbidden imports of code and of types', () => {
		const typeOnly = { typeOnly: true, lazy: false };
		const breaking = [
			{ from: 'engine/rules/subscribers.ts', to: 'store/queue.ts', ...typeOnly },
			{ from: 'store/core/queue.ts', to: 'engine/context.ts', ...typeOnly },
			{ from: 'delivery/run.ts', to: 'engine/engine.ts', ...typeOnly },
			{ from: 'cli/frame/run.ts', to: 'cli/connect/local.ts', typeOnly: false, lazy: false },
		];
		expect(breaking.filter((one) => !isUpward(one))).toEqual([]);
	});

	it('has no import cycles', () => {
		expect(cycles()).toEqual([]);
	});

	it('has no folder with a meaningless name such as utils', () => {
		expect(
			files.filter((file) => /(^|\/)(utils?|helpers?|common|lib|misc|shared)(\/|\.ts$)/.test(file)),
		).toEqual([]);
	});

	it('uses process.exit, console, process.env and Date.now only in four files', () => {
		const effects = /\bprocess\.exit\(|\bconsole\.|\bprocess\.env\b|\bDate\.now\(/;
		const home = /^(cli\/(main|frame\/io|config\/config)\.ts|api\/datetime\.ts)$/;
		expect(files.filter((file) => !home.test(file) && effects.test(code(file)))).toEqual([]);
	});

	// The build copies an export once, when its chunk has run, so a later assignment would be lost.
	it('exports no mutable variables', () => {
		const exported = files.filter((file) => /^export (let|var)\b/m.test(code(file)));
		const renamed = files.filter((file) => {
			const names = [...code(file).matchAll(/^export \{([^}]*)\};?$/gm)].flatMap(([, list = '']) =>
				list.split(','),
			);
			return names.some((name) =>
				new RegExp(`^(let|var) ${name.trim().split(' ')[0]}\\b`, 'm').test(code(file)),
			);
		});
		expect([...exported, ...renamed]).toEqual([]);
	});

	it('has at most 40 source files in each folder', () => {
		const folders = [...new Set(files.map((file) => dirname(file)))];
		const size = (folder: string) => files.filter((file) => dirname(file) === folder).length;
		expect(folders.filter((folder) => size(folder) > 40)).toEqual([]);
	});

	it('contains the files that the documentation names', () => {
		const top = join(root, '..');
		const folders = ['bin', 'docs', 'scripts', 'src', 'test'];
		const paths = folders.flatMap((folder) =>
			readdirSync(join(top, folder), { recursive: true }).map((name) => `/${folder}/${name}`),
		);
		const documents = [
			...['README.md', 'CONTRIBUTING.md', 'SECURITY.md'],
			...paths.filter((path) => /^\/docs\/.*\.md$/.test(path)),
		];
		const named = documents.flatMap((document) =>
			[...readFileSync(join(top, document), 'utf8').matchAll(/`([\w./-]+\.(?:ts|mjs))`/g)].map(
				([, name = '']) => ({ document, name }),
			),
		);
		expect(named.length).toBeGreaterThan(50);
		const isThere = (name: string) =>
			/[A-Z]{4}/.test(name) || paths.some((path) => path.endsWith(`/${name}`));
		expect(named.filter(({ name }) => !isThere(name))).toEqual([]);
	});

	it('lets tests call spawnSync and execSync only in support/run-program.ts, which never truncates output', () => {
		const tests = join(root, '../test');
		const runners = sourceFiles(tests).filter((file) =>
			/\b(spawnSync|execSync|execFileSync)\b/.test(readFileSync(file, 'utf8')),
		);
		expect(runners.map((file) => relative(tests, file)).sort()).toEqual([
			'architecture.test.ts',
			'support/run-program.ts',
		]);
	});

	it('calls URL.canParse in one file only', () => {
		const asking = sourceFiles(root).filter((file) => code(relative(root, file)).includes('URL.canParse'));
		expect(asking.map((file) => relative(root, file))).toEqual(['api/schema/url.ts']);
	});

	it('loads no large package before a command runs', () => {
		const heavy =
			/^(better-sqlite3|undici|conf|cli-table3|@inquirer\/prompts|csv-parse|nodemailer|juice|html-to-text|htmlparser2|smtp-server|postal-mime|iconv-lite)/;
		const eager = [...reachable('cli/main.ts')].flatMap((file) =>
			[...code(file).matchAll(/^(?:import|export)\s(?!type\b)[^'"]*['"]([^'".][^'"]*)['"]/gm)]
				.map((match) => match[1] ?? '')
				.filter((name) => heavy.test(name))
				.map((name) => `${file} → ${name}`),
		);
		expect(eager).toEqual([]);
	});
});

/** Files that load with `entry` through static imports; type imports do not count. */
function reachable(entry: string): Set<string> {
	const seen = new Set<string>();
	const waiting = [entry];
	for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
		if (seen.has(file)) continue;
		seen.add(file);
		const current = file;
		waiting.push(
			...imports.filter((one) => one.from === current && !one.typeOnly && !one.lazy).map((one) => one.to),
		);
	}
	return seen;
}

/** The longest entry of `layers` that contains the file. */
function partOf(file: string): string {
	const matching = layers.flat().filter((part) => file.startsWith(`${part}/`) || file === `${part}.ts`);
	return matching.sort((one, other) => other.length - one.length)[0] ?? file;
}

/** Whether an import goes to a higher layer, or to another part of its layer. */
function isUpward({ from, to, lazy, typeOnly }: Import): boolean {
	const [own, other] = [partOf(from), partOf(to)];
	if (own === other || (other === 'cli/connect' && (lazy || typeOnly))) return false;
	const levelOf = (part: string) => layers.findIndex((layer) => layer.includes(part));
	return levelOf(other) >= levelOf(own);
}

function allowed({ from, to, lazy, typeOnly }: Import): boolean {
	const isRoot = /^cli\/connect(\.ts|\/[\w-]+\.ts)$/;
	if (!isRoot.test(from) && isRoot.test(to)) return lazy || typeOnly;
	const row = table.find(({ files: pattern }) => pattern.test(from));
	return row?.may.some((may) => (may instanceof RegExp ? may.test(to) : may === '*')) ?? false;
}

function cycles(): string[] {
	const found: string[] = [];
	const done = new Set<string>();
	const visit = (file: string, path: readonly string[]) => {
		if (path.includes(file)) {
			found.push([...path.slice(path.indexOf(file)), file].join(' → '));
			return;
		}
		if (done.has(file)) return;
		for (const one of imports)
			if (one.from === file && !one.lazy && !one.typeOnly) visit(one.to, [...path, file]);
		done.add(file);
	};
	for (const file of files) visit(file, []);
	return found;
}

function importsOf(file: string): Import[] {
	const found: Import[] = [];
	const add = (specifier: string | undefined, kind: { typeOnly: boolean; lazy: boolean }) => {
		if (specifier?.startsWith('.') !== true) return;
		const to = normalize(join(dirname(file), specifier)).replace(/\.js$/, '.ts');
		found.push({ from: file, to, ...kind });
	};
	const text = code(file);
	for (const [, type, specifier] of text.matchAll(
		/^(?:import|export)\s(type\s)?[^'";]*?from\s+['"]([^'"]+)['"]/gm,
	)) {
		add(specifier, { typeOnly: type !== undefined, lazy: false });
	}
	for (const [, specifier] of text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)/g)) {
		add(specifier, { typeOnly: false, lazy: true });
	}
	return found;
}

function code(file: string): string {
	return read(file)
		.replace(/\/\*[\s\S]*?\*\//g, '')
		.replace(/^\s*\/\/.*$/gm, '');
}

function read(file: string): string {
	return readFileSync(join(root, file), 'utf8');
}

function sourceFiles(folder: string): string[] {
	return readdirSync(folder).flatMap((name) => {
		const path = join(folder, name);
		if (statSync(path).isDirectory()) return sourceFiles(path);
		return name.endsWith('.ts') ? [path] : [];
	});
}
