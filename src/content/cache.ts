/** Compiled contents by hash: the least recently used go first, when the bytes are used up. */
import type { Content } from '../api/content.js';
import { compileContent } from './compile.js';
import type { CompiledContent, InlineCss } from './types.js';

export interface ContentCache {
	/** The compiled content of this hash (see `contentSha256`). Gets of one hash at the same time compile once. */
	get(sha256: string, content: Content): Promise<CompiledContent>;
}

export interface ContentCacheOptions {
	inlineCss: InlineCss;
	/** Estimated memory of all that is kept; a content that is larger alone is compiled and not kept. */
	maxBytes: number;
}

interface Entry {
	readonly compiled: Promise<CompiledContent>;
	/** Corrected when it is compiled: CSS that is inlined may make a small content large. */
	bytes: number;
}

/**
 * In memory, for all who compose or answer for what was sent. A content that does not compile rejects, each time anew.
 */
export function createContentCache({ inlineCss, maxBytes }: ContentCacheOptions): ContentCache {
	// A Map keeps the order of insertion: first is oldest.
	const entries = new Map<string, Entry>();
	let used = 0;

	function drop(sha256: string, entry: Entry): void {
		if (entries.get(sha256) !== entry) return;
		entries.delete(sha256);
		used -= entry.bytes;
	}

	function weigh(sha256: string, entry: Entry, compiled: CompiledContent): void {
		if (entries.get(sha256) !== entry) return;
		used -= entry.bytes;
		entry.bytes = estimate(compiled.preview({ variables: {} }));
		used += entry.bytes;
		makeRoom();
	}

	function keep(sha256: string, entry: Entry): void {
		entries.set(sha256, entry);
		used += entry.bytes;
		makeRoom();
	}

	function makeRoom(): void {
		for (const [oldest, other] of entries) {
			if (used <= maxBytes) break;
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
			const entry = { compiled: compileContent(content, inlineCss), bytes: estimate(content) };
			keep(sha256, entry);
			entry.compiled.then(
				(compiled) => weigh(sha256, entry, compiled),
				// A failure is not remembered: the next get tries again.
				() => drop(sha256, entry),
			);
			return entry.compiled;
		},
	};
}

/** Inlined, cut for joining and once more for the preview: about five times what was written, plus the objects. */
function estimate({ subject, text, html }: Pick<Content, 'subject' | 'text' | 'html'>): number {
	return 4096 + 5 * (subject.length + (text?.length ?? 0) + (html?.length ?? 0));
}
