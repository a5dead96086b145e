/** What an argument that takes many names: its words, and the lines of standard input where one of them is `-`. */
import { createInterface } from 'node:readline';
import type { CommandContext } from './context.js';

/** In the order they were given; blank lines name nothing, and what stands around a line is not part of it. */
export async function* namesOf(cx: CommandContext, texts: readonly string[]): AsyncGenerator<string> {
	for (const text of texts) {
		if (text !== '-') {
			yield text;
			continue;
		}
		const input = cx.sources.stdin('-');
		for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
			if (line.trim() !== '') yield line.trim();
		}
	}
}
