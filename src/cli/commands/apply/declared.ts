/** Reads the file of `apply` and `diff`: resources by name, in YAML 1.2 or JSON. Sends no request. */

import { dirname, resolve } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import { webhookTypes } from '../../../api/records.js';
import type { FileSource } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { didYouMean } from '../../frame/words.js';
import { type Declaration, type Declared, type Kind, kinds, type Value } from './plan.js';

/** `optional`: an empty text means null. `file`: `password_file: PATH` sets `password` to the content of the file. */
type Shape = 'text' | 'optional' | 'flag' | 'file' | 'type' | 'secret';

interface KindSpec {
	keys: Readonly<Record<string, Shape>>;
	required: readonly string[];
	short?: string;
	nameOf: (values: Readonly<Record<string, Value>>) => string;
}

const specs: Readonly<Record<Exclude<Kind, 'settings'>, KindSpec>> = {
	senders: {
		...{ keys: { email: 'text' }, required: ['email'], short: 'email' },
		nameOf: ({ email }) => String(email).toLowerCase(),
	},
	fields: {
		...{ keys: { variable: 'text', name: 'text' }, required: ['variable', 'name'] },
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

export async function readDeclaration(cx: CommandContext, file: FileSource): Promise<Declaration> {
	const reader = new Reader(cx, file);
	const found: Partial<Record<Kind, readonly Declared[]>> = {};
	for (const [key, value] of entriesOf(parse(await file.text(), file.name), file.name)) {
		const kind = kinds.find((one) => one === key);
		if (kind === undefined) throw unknownKey(file.name, key, kinds);
		const resources =
			kind === 'settings' ? await reader.settings(value) : await reader.resources(kind, value);
		for (const [at, { name, where }] of resources.entries()) {
			const first = resources.find((one) => one.name === name);
			if (first !== resources[at]) fail(where, `"${name}" is already declared at ${first?.where}`);
		}
		found[kind] = resources;
	}
	return found;
}

/** YAML tags of numbers. The parser reads numbers as text, so that a name such as 007 stays as written. */
const numbers: ReadonlySet<string> = new Set(['tag:yaml.org,2002:int', 'tag:yaml.org,2002:float']);

function parse(text: string, name: string): unknown {
	const lineCounter = new LineCounter();
	const document = parseDocument(text, {
		...{ lineCounter, prettyErrors: false, version: '1.2' },
		customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || !numbers.has(tag.tag)),
	});
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
	readonly #cx: CommandContext;
	readonly #file: FileSource;

	constructor(cx: CommandContext, file: FileSource) {
		this.#cx = cx;
		this.#file = file;
	}

	async settings(given: unknown): Promise<Declared[]> {
		const found: Declared[] = [];
		for (const [key, value] of entriesOf(given, `${this.#file.name}: settings`)) {
			const where = `${this.#file.name}: settings.${key}`;
			const isFile = key.endsWith('_file');
			const text = value === null ? null : textIn(typeof value === 'boolean' ? String(value) : value, where);
			const read = text && (await (isFile ? this.#content(text, where) : this.#fromEnvironment(text, where)));
			found.push({ name: isFile ? key.slice(0, -'_file'.length) : key, values: { value: read }, where });
		}
		return found;
	}

	async resources(kind: Exclude<Kind, 'settings'>, given: unknown): Promise<Declared[]> {
		if (given === null) return [];
		const place = `${this.#file.name}: ${kind}`;
		if (!Array.isArray(given)) fail(place, 'must be a list: begin each item with "-"');
		const found: Declared[] = [];
		for (const [at, item] of given.entries())
			found.push(await this.#resource(specs[kind], item, `${place}[${at}]`));
		return found;
	}

	async #resource(spec: KindSpec, given: unknown, where: string): Promise<Declared> {
		const values: Record<string, Value> = {};
		const isShort = spec.short !== undefined && typeof given === 'string';
		for (const [key, value] of entriesOf(isShort ? { [spec.short ?? '']: given } : given, where)) {
			const shape = Object.hasOwn(spec.keys, key) ? spec.keys[key] : undefined;
			if (shape === undefined) throw unknownKey(where, key, Object.keys(spec.keys));
			const name = shape === 'file' ? key.slice(0, -'_file'.length) : key;
			if (name in values) fail(where, `use either ${name} or ${name}_file, not both`);
			values[name] = await this.#value(shape, value, `${where}.${key}`);
		}
		const missing = spec.required.find((key) => !(key in values));
		if (missing !== undefined) fail(where, `${missing} is missing`);
		return { name: spec.nameOf(values), values, where };
	}

	async #value(shape: Shape, value: unknown, where: string): Promise<Value> {
		if (shape === 'flag') return typeof value === 'boolean' ? value : fail(where, 'must be true or false');
		if (shape === 'optional' && (value === null || value === '')) return null;
		const text = textIn(value, where);
		if (shape === 'file') return this.#content(text, where);
		if (shape === 'secret') return this.#fromEnvironment(text, where);
		if (shape === 'type' && !webhookTypes.some((one) => one === text))
			fail(where, `must be one of ${webhookTypes.join(', ')}`);
		return text;
	}

	/** Removes the final newline, which editors add to secrets and bodies. */
	async #content(path: string, where: string): Promise<string> {
		const from = this.#file.path === null ? '.' : dirname(this.#file.path);
		const read = this.#cx.sources.file(resolve(from, path), 'file').text();
		const text = await read.catch((error: unknown) => {
			if (error instanceof UsageError) fail(where, error.message);
			throw error;
		});
		return text.replace(/\r?\n$/, '');
	}

	/** A text that is only `${NAME}` stands for an environment variable. */
	async #fromEnvironment(text: string, where: string): Promise<string> {
		const name = /^\$\{([A-Za-z_]\w*)\}$/.exec(text)?.[1];
		if (name === undefined) return text;
		return this.#cx.io.env[name] ?? fail(where, `the variable ${name} is not set in the environment`);
	}
}

function textIn(value: unknown, where: string): string {
	return typeof value === 'string' ? value : fail(where, 'must be text: put the value in quotes');
}

function entriesOf(given: unknown, where: string): [string, unknown][] {
	if (given === null) return [];
	if (typeof given === 'object' && !Array.isArray(given)) return Object.entries(given);
	return fail(where, 'must have keys with values');
}

function unknownKey(where: string, key: string, known: readonly string[]): UsageError {
	const hint = didYouMean(key, known) ?? `keys: ${known.join(', ')}`;
	return new UsageError(`${where}: unknown key "${key}": ${hint}`);
}

function fail(where: string, what: string): never {
	throw new UsageError(`${where}: ${what}`);
}
