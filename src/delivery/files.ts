import type { Attachment } from '../api/attachments.js';
import { encodeFile } from '../content/attachments.js';
import { ByteCache } from '../content/cache.js';
import type { Reads } from '../store/operations.js';

export interface EncodedFiles {
	get(files: readonly Attachment[]): Promise<ReadonlyMap<string, Buffer>>;
}

export function createEncodedFiles(
	reads: Pick<Reads, 'getAttachment'>,
	maxBytes = 32 * 1024 * 1024,
): EncodedFiles {
	const kept = new ByteCache<Buffer>(maxBytes);
	const reading = new Map<string, Promise<Buffer | null>>();
	const read = async (sha256: string) => {
		const bytes = await reads.getAttachment({ sha256 });
		if (bytes === null) return null;
		const encoded = encodeFile(bytes);
		kept.set(sha256, encoded, encoded.length);
		return encoded;
	};
	const find = (sha256: string): Promise<Buffer | null> | Buffer => {
		const known = kept.get(sha256);
		if (known !== undefined) return known;
		const underWay = reading.get(sha256) ?? read(sha256).finally(() => reading.delete(sha256));
		reading.set(sha256, underWay);
		return underWay;
	};
	return {
		get: async (files) => {
			const found = new Map<string, Buffer>();
			for (const { sha256 } of files) {
				const encoded = await find(sha256);
				if (encoded !== null) found.set(sha256, encoded);
			}
			return found;
		},
	};
}

interface SharedBytes {
	hold(files: readonly Buffer[]): number;
	release(files: readonly Buffer[]): void;
}

export function createSharedBytes(): SharedBytes {
	const holders = new Map<ArrayBufferLike, number>();
	return {
		hold: (files) => {
			let fresh = 0;
			for (const { buffer, length } of files) {
				const count = holders.get(buffer) ?? 0;
				if (count === 0) fresh += length;
				holders.set(buffer, count + 1);
			}
			return fresh;
		},
		release: (files) => {
			for (const { buffer } of files) {
				const count = (holders.get(buffer) ?? 1) - 1;
				if (count === 0) holders.delete(buffer);
				else holders.set(buffer, count);
			}
		},
	};
}
