/**
 * The file of `apply` and `diff`: resources by their names, in YAML 1.2 or JSON. All is checked before anything
 * is asked of a deployment.
 */
import { dirname, resolve } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
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
	const reader = new Reader(cx, file);
	const declaration = await reader.read(parse(await file.text(), file.name));
	refuseFindings(reader.findings);
	return declaration;
}

/** Numbers stay texts: a name such as 2026 or 007 is meant as it is written. */
const numbers: ReadonlySet<string> = new Set(['tag:yaml.org,2002:int', 'tag:yaml.org,2002:float']);

function parse(text: string, name: string): unknown {
	const lineCounter = new LineCounter();
	const document = parseDocument(text, {
		...{ lineCounter, prettyErrors: false, version: '1.2' },
		customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || !numbers.has(tag.tag)),
	});
	// The others follow from the first.
	const [fault] = [...document.errors, ...document.warnings];
	if (fault !== undefined) {
		const { line, col } = lineCounter.linePos(fault.pos[0]);
		throw new UsageError(`${name}:${line}:${col}: ${fault.message}`);
	}
	try {
		return document.toJS();
	} catch (cause) {
		throw new UsageError(`${name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
	}
}

class Reader {
	readonly findings: string[] = [];
	readonly #cx: CommandContext;
	readonly #file: FileSource;

	constructor(cx: CommandContext, file: FileSource) {
		this.#cx = cx;
		this.#file = file;
	}

	async read(document: unknown): Promise<Declaration> {
		const found: Partial<Record<Kind, Declared[]>> = {};
		for (const [key, value] of this.#entries(document, this.#file.name)) {
			const kind = kinds.find((one) => one === key);
			if (kind === undefined) this.#unknown(this.#file.name, key, kinds);
			else if (kind === 'settings') found.settings = await this.#settings(value);
			else found[kind] = await this.#resources(kind, value);
		}
		for (const resources of Object.values(found)) {
			const seen = new Map<string, string>();
			for (const { name, where } of resources) {
				const first = seen.get(name);
				if (first !== undefined) this.#find(where, `"${name}" is there already, at ${first}`);
				seen.set(name, first ?? where);
			}
		}
		return found;
	}

	async #settings(given: unknown): Promise<Declared[]> {
		const found: Declared[] = [];
		for (const [key, value] of this.#entries(given, `${this.#file.name}: settings`)) {
			const where = `${this.#file.name}: settings.${key}`;
			const isFile = key.endsWith('_file');
			const text =
				value === null ? null : this.#text(typeof value === 'boolean' ? String(value) : value, where);
			const read =
				isFile && text ? await this.#content(text, where) : text && this.#fromEnvironment(text, where);
			found.push({ name: isFile ? key.slice(0, -'_file'.length) : key, values: { value: read }, where });
		}
		return found;
	}

	async #resources(kind: Exclude<Kind, 'settings'>, given: unknown): Promise<Declared[]> {
		if (given === null) return [];
		if (!Array.isArray(given)) {
			this.#find(`${this.#file.name}: ${kind}`, 'a list of resources is wanted, each with a "-"');
			return [];
		}
		const found: Declared[] = [];
		for (const [at, item] of given.entries()) {
			const one = await this.#resource(specs[kind], item, `${this.#file.name}: ${kind}[${at}]`);
			if (one !== null) found.push(one);
		}
		return found;
	}

	async #resource(spec: KindSpec, given: unknown, where: string): Promise<Declared | null> {
		const before = this.findings.length;
		const values: Record<string, Value> = {};
		const isShort = spec.short !== undefined && typeof given === 'string';
		for (const [key, value] of this.#entries(isShort ? { [spec.short ?? '']: given } : given, where)) {
			const shape = Object.hasOwn(spec.keys, key) ? spec.keys[key] : undefined;
			if (shape === undefined) {
				this.#unknown(where, key, Object.keys(spec.keys));
				continue;
			}
			const name = shape === 'file' ? key.slice(0, -'_file'.length) : key;
			if (name in values) this.#find(where, `${name} and ${name}_file both give it`);
			values[name] = await this.#value(shape, value, `${where}.${key}`);
		}
		for (const key of spec.required)
			if (!(key in values) && before === this.findings.length) this.#find(where, `${key} is missing`);
		return before === this.findings.length ? { name: spec.nameOf(values), values, where } : null;
	}

	async #value(shape: Shape, value: unknown, where: string): Promise<Value> {
		if (shape === 'flag' && typeof value !== 'boolean') this.#find(where, 'true or false is wanted');
		if (shape === 'flag') return value === true;
		if (shape === 'optional' && (value === null || value === '')) return null;
		const text = this.#text(value, where);
		if (shape === 'file') return this.#content(text, where);
		if (shape === 'secret') return this.#fromEnvironment(text, where);
		if (shape === 'type' && !webhookTypes.some((one) => one === text))
			this.#find(where, `one of ${webhookTypes.join(', ')} is wanted`);
		return text;
	}

	#text(value: unknown, where: string): string {
		if (typeof value === 'string') return value;
		this.#find(where, 'a text is wanted: put it in quotes');
		return '';
	}

	/** A file beside the one that names it; its last line end is not part of a secret or a body. */
	async #content(path: string, where: string): Promise<string> {
		const from = this.#file.path === null ? '.' : dirname(this.#file.path);
		try {
			const text = await this.#cx.sources.file(resolve(from, path), 'file').text();
			return text.replace(/\r?\n$/, '');
		} catch (error) {
			if (!(error instanceof UsageError)) throw error;
			this.#find(where, error.message);
			return '';
		}
	}

	/** `${NAME}` as a whole stands for a variable of the environment. */
	#fromEnvironment(text: string, where: string): string {
		const name = /^\$\{([A-Za-z_]\w*)\}$/.exec(text)?.[1];
		if (name === undefined) return text;
		const value = this.#cx.io.env[name];
		if (value === undefined) this.#find(where, `the variable ${name} is not set in the environment`);
		return value ?? '';
	}

	#entries(given: unknown, where: string): [string, unknown][] {
		if (given === null) return [];
		if (typeof given === 'object' && !Array.isArray(given)) return Object.entries(given);
		this.#find(where, 'keys with values are wanted');
		return [];
	}

	#unknown(where: string, key: string, known: readonly string[]): void {
		this.#find(where, `unknown key "${key}": ${didYouMean(key, known) ?? `known are ${known.join(', ')}`}`);
	}

	#find(where: string, what: string): void {
		this.findings.push(`${where}: ${what}`);
	}
}
