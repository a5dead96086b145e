import type { Content } from '../api/messages.js';
import { bytesOf, type CompiledContent, compileContent } from './compile.js';
import type { AskHtml } from './read-html.js';

/** Keeps at most `maxBytes` and drops the least recently used values. Keeps the newest value, however large. */
export class ByteCache<V> {
	readonly #maxBytes: number;
	readonly #entries = new Map<string, { value: V; bytes: number }>();
	#used = 0;

	constructor(maxBytes: number) {
		this.#maxBytes = maxBytes;
	}

	get(key: string): V | undefined {
		const entry = this.#entries.get(key);
		if (entry === undefined) return undefined;
		this.#entries.delete(key);
		this.#entries.set(key, entry);
		return entry.value;
	}

	set(key: string, value: V, bytes: number): void {
		this.delete(key);
		this.#entries.set(key, { value, bytes });
		this.#used += bytes;
		for (const oldest of this.#entries.keys()) {
			if (this.#used <= this.#maxBytes || this.#entries.size === 1) break;
			this.delete(oldest);
		}
	}

	delete(key: string): void {
		this.#used -= this.#entries.get(key)?.bytes ?? 0;
		this.#entries.delete(key);
	}
}

export interface ContentCache {
	/** Concurrent calls for one hash compile the content once. */
	get(sha256: string, content: Content): Promise<CompiledContent>;
}

export function createContentCache(options: { askHtml: AskHtml; maxBytes: number }): ContentCache {
	const cache = new ByteCache<Promise<CompiledContent>>(options.maxBytes);
	return {
		get(sha256, content) {
			const known = cache.get(sha256);
			if (known !== undefined) return known;
			const compiled = compileContent(content, options.askHtml);
			cache.set(sha256, compiled, bytesOf(content));
			compiled.then(
				({ bytes }) => cache.set(sha256, compiled, bytes),
				() => cache.delete(sha256),
			);
			return compiled;
		},
	};
}
