import type { Attachment } from '../api/attachments.js';
import { encodeFile } from '../content/attachments.js';
import { ByteCache } from '../content/cache.js';
import type { Reads } from '../store/operations.js';

export class EncodedFiles {
	readonly #reads: Pick<Reads, 'getAttachment'>;
	readonly #kept: ByteCache<Buffer>;
	readonly #reading = new Map<string, Promise<Buffer | null>>();

	constructor(reads: Pick<Reads, 'getAttachment'>, maxBytes = 32 * 1024 * 1024) {
		this.#reads = reads;
		this.#kept = new ByteCache(maxBytes);
	}

	async get(files: readonly Attachment[]): Promise<ReadonlyMap<string, Buffer>> {
		const found = new Map<string, Buffer>();
		for (const { sha256 } of files) {
			const encoded = this.#kept.get(sha256) ?? (await this.#readOnce(sha256));
			if (encoded !== null) found.set(sha256, encoded);
		}
		return found;
	}

	#readOnce(sha256: string): Promise<Buffer | null> {
		const underWay =
			this.#reading.get(sha256) ?? this.#read(sha256).finally(() => this.#reading.delete(sha256));
		this.#reading.set(sha256, underWay);
		return underWay;
	}

	async #read(sha256: string): Promise<Buffer | null> {
		const bytes = await this.#reads.getAttachment({ sha256 });
		if (bytes === null) return null;
		const encoded = encodeFile(bytes);
		this.#kept.set(sha256, encoded, encoded.length);
		return encoded;
	}
}

/** Counts the bytes of a file once, even if several mails in flight share the file. */
export class SharedBytes {
	readonly #holders = new Map<ArrayBufferLike, number>();

	hold(files: readonly Buffer[]): number {
		let fresh = 0;
		for (const { buffer, length } of files) {
			const count = this.#holders.get(buffer) ?? 0;
			if (count === 0) fresh += length;
			this.#holders.set(buffer, count + 1);
		}
		return fresh;
	}

	release(files: readonly Buffer[]): void {
		for (const { buffer } of files) {
			const count = (this.#holders.get(buffer) ?? 1) - 1;
			if (count === 0) this.#holders.delete(buffer);
			else this.#holders.set(buffer, count);
		}
	}
}
