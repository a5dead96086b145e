import type { Content } from '../api/messages.js';
import { bytesOf, compileContent } from './compile.js';
import type { AskHtml } from './read-html.js';
import type { CompiledContent } from './types.js';

export interface ContentCache {
	/** Gets of one hash at the same time compile once. */
	get(sha256: string, content: Content): Promise<CompiledContent>;
}

interface ContentCacheOptions {
	askHtml: AskHtml;
	/** A larger content is kept alone, so that a campaign of it compiles it once. */
	maxBytes: number;
}

interface Entry {
	readonly compiled: Promise<CompiledContent>;
	bytes: number;
}

export function createContentCache({ askHtml, maxBytes }: ContentCacheOptions): ContentCache {
	const entries = new Map<string, Entry>();
	let used = 0;

	function drop(sha256: string, entry: Entry): void {
		if (entries.get(sha256) !== entry) return;
		entries.delete(sha256);
		used -= entry.bytes;
	}

	function weigh(sha256: string, entry: Entry, bytes: number): void {
		if (entries.get(sha256) !== entry) return;
		used += bytes - entry.bytes;
		entry.bytes = bytes;
		makeRoom();
	}

	function keep(sha256: string, entry: Entry): void {
		entries.set(sha256, entry);
		used += entry.bytes;
		makeRoom();
	}

	function makeRoom(): void {
		for (const [oldest, other] of entries) {
			if (used <= maxBytes || entries.size === 1) break;
			drop(oldest, other);
		}
	}

	return {
		get(sha256, content) {
			const known = entries.get(sha256);
			if (known !== undefined) {
				entries.delete(sha256);
				entries.set(sha256, known);
				return known.compiled;
			}
			const compiled = compileContent(content, askHtml, (bytes) => weigh(sha256, entry, bytes));
			const entry: Entry = { compiled, bytes: bytesOf(content.subject, content.text, content.html) };
			keep(sha256, entry);
			compiled.catch(() => drop(sha256, entry));
			return entry.compiled;
		},
	};
}
