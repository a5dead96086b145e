/** Memory of a compiled content in V8: estimates, between two thirds and twice what the test measures in a process. */

/** Adds up the memory as it grows. */
export interface ContentMemory {
	add(bytes: number): void;
}

/** The objects and closures of any compiled content, however small. */
const base = 6 * 1024;

/** `onHeld` gets the sum each time it grows. */
export function contentMemory(onHeld: (bytes: number) => void): ContentMemory {
	let sum = base;
	return {
		add: (bytes) => {
			sum += bytes;
			onHeld(sum);
		},
	};
}

/** The bytes of texts: one byte a character where all are Latin-1, else two. */
export function bytesOf(...texts: readonly (string | null)[]): number {
	return texts.reduce((sum, text) => sum + (text === null ? 0 : 24 + widthOf(text) * text.length), 0);
}

function widthOf(text: string): 1 | 2 {
	return /[^\x00-\xff]/.test(text) ? 2 : 1;
}
