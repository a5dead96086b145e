/** Parses bodies like DRF's JSONParser (api-decisions 2). */
import type { IncomingMessage } from 'node:http';
import { type BodySize, maxBodyBytes } from '../../api/bodies.js';
import { ApiError } from '../../api/errors.js';
import { decodeUtf8, parseJsonBody } from '../../api/json.js';
import type { HttpRequest, ReadBody } from '../wire.js';
import type { SocketExchange } from './connection.js';
import type { LazyAbortController } from './exchange.js';
import type { Budget, Slots } from './limits.js';

export async function readJson(request: HttpRequest, size: BodySize): Promise<unknown> {
	const maxBytes = maxBodyBytes[size];
	const bytes = await readBytes(request, maxBytes);
	if (bytes === null || bytes.length === 0) return {};
	assertJson(request.headers['content-type'] ?? '');
	assertPlain(request.headers['content-encoding']);
	// A send call with its maximum of 1,000 recipients needs fewer than 200,000 values. A batch may need more.
	const maxValues = size === 'json' ? 200_000 : maxBytes;
	const text = decodeUtf8(bytes);
	if (text === null) throw parseError('The text is not UTF-8.');
	const parsed = parseJsonBody(text, { numbers: 'exact', maxValues });
	if (parsed.kind === 'invalid') throw parseError(parsed.message);
	return parsed.value;
}

export async function readFile(request: HttpRequest): Promise<Uint8Array> {
	const bytes = (await readBytes(request, maxBodyBytes.file, 'file')) ?? new Uint8Array();
	assertPlain(request.headers['content-encoding']);
	return bytes;
}

async function readBytes({ body }: HttpRequest, maxBytes: number, kind?: 'file'): Promise<Uint8Array | null> {
	const bytes = typeof body === 'function' ? await body(maxBytes, undefined, kind) : body;
	if (bytes !== null && bytes.length > maxBytes) throw tooLarge(maxBytes);
	return bytes;
}

function tooLarge(maxBytes: number): ApiError {
	const kib = maxBytes / 1024;
	const size = kib < 1024 ? `${kib} KiB` : `${kib / 1024} MiB`;
	return new ApiError('too_large', `The request body is larger than ${size}.`);
}

// Accepts the same types as DRF.
function assertJson(contentType: string): void {
	const [main = '', sub = ''] = (contentType.split(';')[0] ?? '').trim().toLowerCase().split('/');
	const isJson = (main === 'application' || main === '*') && (sub === 'json' || sub === '*');
	if (!isJson) throw unsupported(contentType);
}

function assertPlain(encoding: string | undefined): void {
	if (encoding !== undefined && encoding.toLowerCase() !== 'identity') throw unsupported(encoding);
}

function unsupported(type: string): ApiError {
	return new ApiError('unsupported_media_type', `Unsupported media type "${type}" in request.`);
}

function parseError(tail: string): ApiError {
	return new ApiError('parse_error', `JSON parse error - ${tail}`);
}

interface UploadMeans {
	budget: Budget;
	files: FileMemory;
	slots: Slots;
}

/** Counts octets as they arrive, because a client may announce a large body and never send it. */
export class Upload {
	readonly #exchange: SocketExchange;
	readonly #means: UploadMeans;
	readonly #onLate: () => void;
	#held = 0;
	#endTurn: (() => void) | null = null;
	#room: FileRoom | null = null;

	constructor(exchange: SocketExchange, means: UploadMeans, onLate: () => void) {
		this.#exchange = exchange;
		this.#means = means;
		this.#onLate = onLate;
	}

	readonly read: ReadBody = async (maxBytes, timeoutMs, kind) => {
		const { incoming, outgoing, abort } = this.#exchange;
		const { slots, files } = this.#means;
		const announced = Number(incoming.headers['content-length'] ?? 0);
		if (announced > maxBytes) throw tooLarge(maxBytes);
		if (this.#exchange.expectsContinue) outgoing.writeContinue();
		this.#exchange.expectsContinue = false;
		// Free the slot while the body arrives, so that slow clients hold none.
		slots.release(this.#exchange);
		const timer = timeoutMs === undefined ? undefined : setTimeout(this.#onLate, timeoutMs);
		try {
			if (kind === 'file') {
				await this.#turn();
				this.#room = files.take(maxBytes);
			}
			const reserve = (size: number) => this.#reserve(size, maxBytes);
			const body = await collect(incoming, abort, { reserve, into: this.#room ?? createPieces() });
			await slots.acquire(this.#exchange);
			return body;
		} catch (error) {
			this.release();
			throw error;
		} finally {
			clearTimeout(timer);
		}
	};

	#turn(): Promise<void> {
		const { peer } = this.#exchange;
		const earlier = peer.files;
		peer.files = new Promise((resolve) => {
			this.#endTurn = resolve;
		});
		return earlier;
	}

	#reserve(size: number, maxBytes: number): ApiError | null {
		if (this.#held + size > maxBytes) return tooLarge(maxBytes);
		if (!this.#means.budget.reserve(this.#exchange.peer, size))
			return new ApiError('unavailable', 'Too many requests at once. Try again.', { retryAfterMs: 1000 });
		this.#held += size;
		return null;
	}

	release(): void {
		this.#room?.giveBack();
		this.#room = null;
		this.#means.budget.release(this.#exchange.peer, this.#held);
		this.#held = 0;
		this.#endTurn?.();
	}
}

/** Uses events, because leaving a `for await` loop early would destroy the request and its response. */
function collect(
	incoming: IncomingMessage,
	abort: LazyAbortController,
	{ reserve, into }: { reserve: (size: number) => ApiError | null; into: Collected },
): Promise<Uint8Array | null> {
	return new Promise((resolve, reject) => {
		const settle = (result: Uint8Array | ApiError | null) => {
			incoming.off('data', onData).off('end', onEnd);
			if (result instanceof ApiError) {
				incoming.pause();
				reject(result);
			} else resolve(result);
		};
		const onData = (chunk: Buffer) => {
			const error = reserve(chunk.length);
			if (error === null) into.add(chunk);
			else settle(error);
		};
		const onEnd = () => settle(into.whole());
		incoming.on('data', onData).on('end', onEnd);
		abort.onAbort(() =>
			settle(new ApiError('network', 'The client closed the connection before its request was complete.')),
		);
	});
}

type Collected = Pick<FileRoom, 'add' | 'whole'>;

function createPieces(): Collected {
	const pieces: Uint8Array[] = [];
	return {
		add: (octets) => pieces.push(octets),
		whole: () => (pieces.length === 0 ? null : Buffer.concat(pieces)),
	};
}

/** Shares uploaded files with the store's thread. Reuses the memory, because the garbage collector ignores its size. */
export interface FileMemory {
	take(maxBytes: number): FileRoom;
}

interface FileRoom {
	add(octets: Uint8Array): void;
	whole(): Uint8Array | null;
	giveBack(): void;
}

/** TypeScript's ES2023 types lack `grow`. */
interface GrowingMemory extends SharedArrayBuffer {
	readonly maxByteLength: number;
	grow(bytes: number): void;
}

const step = 1024 * 1024;

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
	// TypeScript's type of this constructor lacks `options`.
	return Reflect.construct(SharedArrayBuffer, [0, options]) as GrowingMemory;
}
