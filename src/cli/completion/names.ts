/**
 * Caches names of lists, fields, templates, senders and campaigns, so that Tab needs no network. Answers of the API
 * fill the cache. Losing the file loses only suggestions.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Api } from '../../api/api.js';
import { isRecord } from '../../api/json.js';
import { makeFolders } from '../../jobs/folders.js';
import { shownDatabase } from '../../store/url.js';
import type { Target } from '../frame/connection.js';

export const nameKinds = ['list', 'field', 'template', 'sender', 'campaign'] as const;
export type NameKind = (typeof nameKinds)[number];

type Names = Record<NameKind, Record<string, string>>;

/** The limit for one kind and one target. A larger file would delay Tab, and a terminal cannot show more names. */
const mostNames = 1_000;

const mostTargets = 20;

export function nameKey(target: Target): string {
	return target.kind === 'local' ? shownDatabase(target.url) : target.baseUrl;
}

export function readNames(file: string, key: string): Names {
	const all = readAll(file);
	const found = Object.hasOwn(all, key) ? all[key] : undefined;
	return Object.fromEntries(
		nameKinds.map((kind) => {
			const names = isRecord(found) && isRecord(found[kind]) ? Object.entries(found[kind]) : [];
			return [kind, Object.fromEntries(names.filter(([, name]) => typeof name === 'string'))];
		}),
	) as Names;
}

function readAll(file: string): Record<string, unknown> {
	try {
		const all: unknown = JSON.parse(readFileSync(file, 'utf8'));
		return isRecord(all) ? all : {};
	} catch {
		return {};
	}
}

/** Names by id, collected from answers of the API. Null: the record was deleted. */
type Told = Record<NameKind, Map<string, string | null>>;

interface NameRecorder {
	listen(api: Api, target: Target): Api;
	/** Writes new names to the file. Ignores failures. */
	keep(): void;
}

export function createNameRecorder(file: string): NameRecorder {
	const told = Object.fromEntries(nameKinds.map((kind) => [kind, new Map()])) as Told;
	let key: string | null = null;
	return {
		listen: (api, target) => {
			key = nameKey(target);
			return listening(api, told);
		},
		keep: () => {
			if (key === null || nameKinds.every((kind) => told[kind].size === 0)) return;
			const names = readNames(file, key);
			const before = JSON.stringify(names);
			for (const kind of nameKinds) {
				for (const [id, name] of told[kind]) {
					if (name === null) delete names[kind][id];
					else if (id in names[kind] || Object.keys(names[kind]).length < mostNames) names[kind][id] = name;
				}
			}
			if (JSON.stringify(names) === before) return;
			const others = Object.entries(readAll(file)).filter(([other]) => other !== key);
			write(file, Object.fromEntries([...others.slice(1 - mostTargets), [key, names]]));
		},
	};
}

function write(file: string, all: object): void {
	try {
		makeFolders(dirname(file));
		const temporary = `${file}.${process.pid}.part`;
		writeFileSync(temporary, JSON.stringify(all), { mode: 0o600 });
		renameSync(temporary, file);
	} catch {}
}

const named: Readonly<Record<string, readonly [kind: NameKind, key: string]>> = {
	lists: ['list', 'name'],
	fields: ['field', 'variable'],
	senders: ['sender', 'from_email'],
	templates: ['template', 'name'],
	campaigns: ['campaign', 'key'],
};

function listening<T extends object>(parts: T, told: Told): T {
	return new Proxy(parts, {
		get: (target, part) => {
			const value = bound(target, part);
			if (part === 'capabilities' && typeof value === 'function')
				return async () => {
					const found: Awaited<ReturnType<Api['capabilities']>> = await value();
					return { ...found, ext: listening(found.ext, told) };
				};
			const [kind, key] = (typeof part === 'string' && Object.hasOwn(named, part) && named[part]) || [];
			return kind === undefined || key === undefined || !isRecord(value)
				? value
				: heard(value, told[kind], key);
		},
	});
}

function heard<C extends object>(collection: C, names: Told[NameKind], key: string): C {
	const note = (record: unknown) => {
		if (isRecord(record) && typeof record[key] === 'string') names.set(String(record['id']), record[key]);
	};
	return new Proxy(collection, {
		get: (target, method) => {
			const call = bound(target, method);
			if (typeof call !== 'function') return call;
			return (...words: unknown[]) => {
				const answer: unknown = Reflect.apply(call, target, words);
				if (!(answer instanceof Promise)) return answer;
				return answer.then((value: unknown) => {
					// A canceled campaign may no longer exist. If it still exists, the next read stores its name again.
					if (method === 'delete' || method === 'cancel') names.set(String(words[0]), null);
					else if (isRecord(value) && Array.isArray(value['results'])) value['results'].forEach(note);
					else note(value);
					return value;
				});
			};
		},
	});
}

function bound(target: object, key: string | symbol): unknown {
	const value: unknown = Reflect.get(target, key, target);
	return typeof value === 'function' ? value.bind(target) : value;
}
