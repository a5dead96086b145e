/**
 * Memory for files that are uploaded. It is shared with the store's thread, so that no file is copied on its way, and
 * used again, for the garbage collector does not know how large shared memory is.
 */

export interface FileMemory {
	/** Room for one file of at most `maxBytes`. */
	take(maxBytes: number): FileRoom;
}

export interface FileRoom {
	add(octets: Uint8Array): void;
	/** What was added, until `giveBack`; null: nothing. */
	whole(): Uint8Array | null;
	/** Its memory is for the next file; a read after this call is a mistake. */
	giveBack(): void;
}

/** Its `grow` is in no TypeScript library of ES2023. */
interface GrowingMemory extends SharedArrayBuffer {
	readonly maxByteLength: number;
	grow(bytes: number): void;
}

/** Octets. The system gives a page when it is written to. */
const step = 1024 * 1024;

/** Keeps `kept` rooms; those of further files at once are left to the garbage collector. */
export function createFileMemory({ kept }: { kept: number }): FileMemory {
	const free: GrowingMemory[] = [];
	return {
		take: (maxBytes) => {
			const last = free.pop();
			const memory = last !== undefined && last.maxByteLength >= maxBytes ? last : newMemory(maxBytes);
			let length = 0;
			return {
				add: (octets) => {
					const end = length + octets.length;
					if (end > memory.byteLength) memory.grow(Math.min(maxBytes, end + step));
					new Uint8Array(memory).set(octets, length);
					length = end;
				},
				whole: () => (length === 0 ? null : new Uint8Array(memory, 0, length)),
				giveBack: () => {
					if (free.length < kept) free.push(memory);
				},
			};
		},
	};
}

function newMemory(maxBytes: number): GrowingMemory {
	const options = { maxByteLength: maxBytes };
	// ES2024, which Node has: the constructor of ES2023 takes no options.
	return Reflect.construct(SharedArrayBuffer, [0, options]) as GrowingMemory;
}
