/** Appending so that it is on the disk when it is said to be: those who append in one turn share one sync. */
import type { FileHandle } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Writes at the end of a file that nobody else writes. */
export interface Appender {
	/**
	 * Resolves when the text is on the disk, in the order of calls; rejects with the system's error, and then the text
	 * does not count: the next one takes its place.
	 */
	append(text: string): Promise<void>;
	/** Nothing is under way any more. */
	idle(): Promise<void>;
}

/** `end`: bytes of the file that count. */
export function createAppender(file: FileHandle, end: number): Appender {
	return new GroupAppender(file, end);
}

interface Waiting {
	text: string;
	done: () => void;
	failed: (error: unknown) => void;
}

class GroupAppender implements Appender {
	readonly #file: FileHandle;
	#end: number;
	#waiting: Waiting[] = [];
	#flushing: Promise<void> | null = null;

	constructor(file: FileHandle, end: number) {
		this.#file = file;
		this.#end = end;
	}

	append(text: string): Promise<void> {
		return new Promise((done, failed) => {
			this.#waiting.push({ text, done, failed });
			this.#flushing ??= this.#flush();
		});
	}

	async idle(): Promise<void> {
		await this.#flushing;
	}

	async #flush(): Promise<void> {
		// Whoever else appends in this turn comes along.
		await nextTurn();
		while (this.#waiting.length > 0) {
			const group = this.#waiting;
			this.#waiting = [];
			try {
				await this.#write(Buffer.from(group.map(({ text }) => text).join('')));
				for (const { done } of group) done();
			} catch (error) {
				for (const { failed } of group) failed(error);
			}
		}
		this.#flushing = null;
	}

	/** By position: what a failed write left behind is overwritten by the next one. */
	async #write(bytes: Buffer): Promise<void> {
		try {
			for (let at = 0; at < bytes.length; ) {
				const { bytesWritten } = await this.#file.write(bytes, at, bytes.length - at, this.#end + at);
				at += bytesWritten;
			}
			await this.#file.datasync();
			this.#end += bytes.length;
		} catch (error) {
			await this.#file.truncate(this.#end).catch(() => undefined);
			throw error;
		}
	}
}
