// Holds the imports of src/ to the table of the architecture: which folder may know which.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../src');

/** The first row that matches a file decides. `own` = its own folder; `*` = everything. */
const table: readonly { files: RegExp; may: readonly (string | RegExp)[] }[] = [
	{ files: /^cli\/connect(\.ts|\/\w+\.ts)$/, may: ['*'] },
	{ files: /^store\/open\.ts$/, may: ['*'] },
	{ files: /^api\//, may: [/^api\//] },
	{ files: /^content\//, may: [/^content\//, /^api\//] },
	{
		files: /^store\/(store|submissions|keys|mailings|queue|notifications|bounces|suppressions|errors)\.ts$/,
		may: [
			/^api\//,
			/^store\/(store|submissions|keys|mailings|queue|notifications|bounces|suppressions|errors)\.ts$/,
		],
	},
	{
		files: /^store\/(sqlite|postgres)\//,
		may: [
			/^store\/(store|submissions|keys|mailings|queue|notifications|bounces|suppressions|errors)\.ts$/,
			/^store\/(sqlite|postgres)\//,
			/^api\//,
			/^engine\/rules\//,
		],
	},
	{
		files: /^engine\/rules\//,
		may: [
			/^engine\/rules\//,
			/^api\//,
			/^store\/(store|submissions|keys|mailings|queue|notifications|bounces)\.ts$/,
		],
	},
	{
		files: /^engine\//,
		may: [
			/^engine\//,
			/^api\//,
			/^content\//,
			/^store\/(store|submissions|keys|mailings|queue|notifications|bounces|suppressions|errors)\.ts$/,
		],
	},
	{
		files: /^delivery\//,
		may: [
			/^delivery\//,
			/^api\//,
			/^content\//,
			/^store\/(store|submissions|keys|mailings|queue|notifications|bounces|suppressions|errors)\.ts$/,
			/^engine\/(events|rules\/)/,
		],
	},
	{ files: /^jobs\//, may: [/^jobs\//, /^api\//, /^cli\/tabular\//] },
	{
		files: /^http\/(errors|routes|\w+-routes|messages)\.ts$/,
		may: [/^http\/(errors|routes|\w+-routes|messages)\.ts$/, /^api\//],
	},
	{ files: /^http\/client\//, may: [/^http\/(client\/|routes\.ts$|errors\.ts$)/, /^api\//] },
	{ files: /^http\/(server|public)\//, may: [/^http\//, /^api\//, /^delivery\/tracking\//] },
	{
		files: /^threads\/table/,
		may: [
			/^threads\//,
			/^cli\/(tabular\/|errors\.ts$)/,
			/^jobs\/(import-|packed-)/,
			/^engine\/rules\/(import|checked)-rows\.ts$/,
			/^api\//,
		],
	},
	{ files: /^threads\/report/, may: [/^threads\//, /^delivery\/bounces\//, /^api\//] },
	{ files: /^threads\//, may: [/^threads\//, /^(content|store|cli\/tabular)\//, /^api\//] },
	{
		files: /^cli\//,
		may: [
			/^cli\//,
			/^api\//,
			/^content\//,
			/^jobs\//,
			/^store\/(queue|errors)\.ts$/,
			// The names of headers and what a status stands for: `api` and `smoke` look at the wire itself.
			/^http\/errors\.ts$/,
		],
	},
];

interface Import {
	from: string;
	to: string;
	typeOnly: boolean;
	lazy: boolean;
}

const files = sourceFiles(root);
const imports = files.flatMap(importsOf);

describe('the architecture', () => {
	it('has source files to look at', () => {
		expect(files.length).toBeGreaterThan(20);
	});

	it('lets each folder import only what its row of the table names', () => {
		expect(imports.filter((one) => !allowed(one)).map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
	});

	it('has no cycles', () => {
		expect(cycles()).toEqual([]);
	});

	it('has no folder that is named for nothing', () => {
		expect(
			files.filter((file) => /(^|\/)(utils?|helpers?|common|lib|misc|shared)(\/|\.ts$)/.test(file)),
		).toEqual([]);
	});

	it('keeps process-wide effects in the files made for them', () => {
		const effects = /\bprocess\.exit\(|\bconsole\.|\bprocess\.env\b|\bDate\.now\(/;
		const home = /^(cli\/(main|io|config)\.ts|api\/datetime\.ts)$/;
		expect(files.filter((file) => !home.test(file) && effects.test(code(file)))).toEqual([]);
	});

	it('keeps files to one idea: none is longer than 350 lines', () => {
		expect(files.filter((file) => read(file).split('\n').length > 351)).toEqual([]);
	});

	it('loads nothing heavy before a command runs', () => {
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

/** Files that are loaded with `entry`: static imports that leave code behind. */
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

function allowed({ from, to, lazy, typeOnly }: Import): boolean {
	// The composition root is reached lazily, and its types may be named.
	const isRoot = /^cli\/connect(\.ts|\/\w+\.ts)$/;
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
		return name.endsWith('.ts') ? [relative(root, path)] : [];
	});
}
