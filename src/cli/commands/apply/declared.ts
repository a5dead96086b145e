/**
 * The file of `apply` and `diff`: resources by their names, in YAML 1.2 or JSON. Every finding names its line, before
 * anything is asked of a deployment.
 */
import { dirname, resolve } from 'node:path';
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { webhookTypes } from '../../../api/records.js';
import type { FileSource } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { didYouMean } from '../../frame/help.js';
import { type Declaration, type Declared, type Kind, kinds, refuseFindings, type Value } from './plan.js';

/** An `optional` text may be empty, or nothing: both are null. A `file` is read into the key without its ending. */
type Shape = 'text' | 'optional' | 'flag' | 'file' | 'type' | 'secret';

interface KindSpec {
	keys: Readonly<Record<string, Shape>>;
	required: readonly string[];
	/** A text alone stands for this key. */
	short?: string;
	nameOf: (values: Readonly<Record<string, Value>>) => string;
}

const specs: Readonly<Record<Exclude<Kind, 'settings'>, KindSpec>> = {
	senders: {
		keys: { email: 'text' },
		required: ['email'],
		short: 'email',
		nameOf: ({ email }) => String(email ?? '').toLowerCase(),
	},
	fields: {
		keys: { variable: 'text', name: 'text' },
		required: ['variable', 'name'],
		nameOf: ({ variable }) => String(variable),
	},
	lists: {
		keys: { name: 'text', email_reason: 'text', public_name: 'optional' },
		required: ['name', 'email_reason'],
		nameOf: ({ name }) => String(name),
	},
	templates: {
		keys: {
			...{ name: 'text', text_body: 'text', html_body: 'text' },
			...{ text_body_file: 'file', html_body_file: 'file' },
		},
		required: ['name'],
		nameOf: ({ name }) => String(name),
	},
	webhooks: {
		keys: {
			...{ url: 'text', type: 'type', is_auth_enabled: 'flag', login: 'text' },
			...{ password: 'secret', password_file: 'file' },
		},
		required: ['url', 'type'],
		nameOf: ({ type, url }) => `${type} ${url}`,
	},
};

/** Throws `UsageError`, with every finding that it can make out at once in its details. */
export async function readDeclaration(cx: CommandContext, file: FileSource): Promise<Declaration> {
	const reader = new Reader(cx, file, await file.text());
	const declaration = await reader.read();
	refuseFindings(reader.findings);
	return declaration;
}

interface Pair {
	key: string;
	at: number;
	value: Node | null;
}

class Reader {
	readonly findings: string[] = [];
	readonly #lines = new LineCounter();
	readonly #document: ReturnType<typeof parseDocument>;
	readonly #cx: CommandContext;
	readonly #file: FileSource;

	constructor(cx: CommandContext, file: FileSource, text: string) {
		this.#cx = cx;
		this.#file = file;
		this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, version: '1.2' });
		// The others follow from the first.
		const [fault] = [...this.#document.errors, ...this.#document.warnings];
		if (fault === undefined) return;
		const isSecond = fault.code === 'MULTIPLE_DOCS';
		this.#find(
			fault.pos[0],
			isSecond ? 'the file is one document, and a second one begins here' : fault.message,
		);
	}

	async read(): Promise<Declaration> {
		if (this.findings.length > 0) return {};
		const found: Partial<Record<Kind, Declared[]>> = {};
		for (const { key, at, value } of this.#pairs(this.#document.contents, 'resources')) {
			const kind = kinds.find((one) => one === key);
			if (kind === undefined) this.#unknown(at, key, kinds);
			else if (kind === 'settings') found.settings = await this.#settings(value);
			else found[kind] = await this.#resources(kind, value);
		}
		for (const resources of Object.values(found)) {
			const seen = new Map<string, string>();
			for (const { name, where } of resources) {
				const first = seen.get(name);
				if (first !== undefined) this.findings.push(`${where}: "${name}" is there already, at ${first}`);
				seen.set(name, first ?? where);
			}
		}
		return found;
	}

	async #settings(node: Node | null): Promise<Declared[]> {
		const found: Declared[] = [];
		for (const { key, at, value } of this.#pairs(node, 'settings')) {
			const isFile = key.endsWith('_file');
			const text = this.#plain(value);
			const given = text === null ? null : typeof text === 'object' ? undefined : String(text);
			if (given === undefined) this.#find(at, `${key} is a text`);
			const read =
				isFile && given ? await this.#content(given, at) : given && this.#fromEnvironment(given, at);
			found.push({
				name: isFile ? key.slice(0, -'_file'.length) : key,
				values: { value: read ?? null },
				where: this.#place(at),
			});
		}
		return found;
	}

	async #resources(kind: Exclude<Kind, 'settings'>, given: Node | null): Promise<Declared[]> {
		const node = this.#resolved(given);
		if (node === null || (isScalar(node) && node.value === null)) return [];
		if (!isSeq<Node>(node)) {
			this.#find(node.range?.[0] ?? 0, `${kind} is a list of resources, each with a "-"`);
			return [];
		}
		const found: Declared[] = [];
		for (const item of node.items) {
			const one = await this.#resource(specs[kind], item, kind);
			if (one !== null) found.push(one);
		}
		return found;
	}

	async #resource(spec: KindSpec, given: Node, kind: string): Promise<Declared | null> {
		const at = given.range?.[0] ?? 0;
		const before = this.findings.length;
		const values: Record<string, Value> = {};
		const node = this.#resolved(given);
		if (spec.short !== undefined && isScalar(node)) values[spec.short] = this.#text(node, at, spec.short);
		else
			for (const pair of this.#pairs(node, `a resource of ${kind}`)) await this.#put(spec.keys, pair, values);
		for (const key of spec.required)
			if (!(key in values) && before === this.findings.length) this.#find(at, `${key} is missing`);
		if (before !== this.findings.length) return null;
		return { name: spec.nameOf(values), values, where: this.#place(at) };
	}

	async #put(keys: KindSpec['keys'], pair: Pair, values: Record<string, Value>): Promise<void> {
		const shape = Object.hasOwn(keys, pair.key) ? keys[pair.key] : undefined;
		if (shape === undefined) return this.#unknown(pair.at, pair.key, Object.keys(keys));
		const key = shape === 'file' ? pair.key.slice(0, -'_file'.length) : pair.key;
		if (key in values) this.#find(pair.at, `${key} and ${key}_file both give it`);
		values[key] = await this.#value(shape, pair);
	}

	async #value(shape: Shape, { key, at, value: node }: Pair): Promise<Value> {
		const plain = this.#plain(node);
		if (shape === 'flag' && typeof plain !== 'boolean') this.#find(at, `${key} is true or false`);
		if (shape === 'flag') return plain === true;
		if (shape === 'optional' && (plain === null || plain === '')) return null;
		const text = this.#text(node, at, key);
		if (shape === 'file') return this.#content(text, at);
		if (shape === 'secret') return this.#fromEnvironment(text, at);
		if (shape === 'type' && !webhookTypes.some((one) => one === text))
			this.#find(at, `${key} is one of ${webhookTypes.join(', ')}`);
		return text;
	}

	#text(node: Node | null, at: number, key: string): string {
		const value = this.#plain(node);
		// A name such as 2026 is a number to YAML, and so meant.
		if (typeof value === 'number' && isScalar(node)) return String(node.source ?? value);
		if (typeof value === 'string') return value;
		this.#find(at, `${key} is a text: put it in quotes`);
		return '';
	}

	/** A file beside the one that names it; its last line end is not part of a secret or a body. */
	async #content(path: string, at: number): Promise<string> {
		const from = this.#file.path === null ? '.' : dirname(this.#file.path);
		try {
			const text = await this.#cx.sources.file(resolve(from, path), 'file').text();
			return text.replace(/\r?\n$/, '');
		} catch (error) {
			if (!(error instanceof UsageError)) throw error;
			this.#find(at, error.message);
			return '';
		}
	}

	/** `${NAME}` as a whole stands for a variable of the environment. */
	#fromEnvironment(text: string, at: number): string {
		const name = /^\$\{([A-Za-z_]\w*)\}$/.exec(text)?.[1];
		if (name === undefined) return text;
		const value = this.#cx.io.env[name];
		if (value === undefined) this.#find(at, `the variable ${name} is not set in the environment`);
		return value ?? '';
	}

	#pairs(given: Node | null, what: string): Pair[] {
		const node = this.#resolved(given);
		if (node === null || (isScalar(node) && node.value === null)) return [];
		if (!isMap<Node, Node | null>(node)) {
			this.#find(node.range?.[0] ?? 0, `${what}: keys with values are wanted here`);
			return [];
		}
		return node.items.map(({ key, value }) => ({
			key: isScalar(key) ? String(key.value) : '',
			at: key.range?.[0] ?? 0,
			value,
		}));
	}

	#plain(given: Node | null): unknown {
		const node = this.#resolved(given);
		if (node === null) return null;
		return isScalar(node) ? node.value : node;
	}

	#resolved(node: Node | null): Node | null {
		if (!isAlias(node)) return node;
		const meant = node.resolve(this.#document);
		if (meant === undefined) this.#find(node.range?.[0] ?? 0, `there is no anchor &${node.source}`);
		return meant ?? null;
	}

	#unknown(at: number, key: string, known: readonly string[]): void {
		const hint = didYouMean(key, known) ?? `known are ${known.join(', ')}`;
		this.#find(at, `unknown key "${key}": ${hint}`);
	}

	#find(at: number, what: string): void {
		this.findings.push(`${this.#place(at)}: ${what}`);
	}

	#place(at: number): string {
		const { line, col } = this.#lines.linePos(at);
		return `${this.#file.name}:${line}:${col}`;
	}
}
