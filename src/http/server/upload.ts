/** Reads request bodies: none larger than its limit, and all together no more than the memory set aside for them. */
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../api/errors.js';
import { tooLarge } from './body.js';
import type { Leaving } from './leaving.js';

/** Octets of bodies that may be held at a time. */
export interface Budget {
	/** False: there is no room. */
	take(bytes: number): boolean;
	give(bytes: number): void;
	/** Octets held now. */
	held(): number;
}

/** One for all requests of a server; whoever takes gives back. Nothing waits here for room. */
export function createBudget(maxBytes: number): Budget {
	let held = 0;
	return {
		take: (bytes) => {
			if (held + bytes > maxBytes) return false;
			held += bytes;
			return true;
		},
		give: (bytes) => {
			held -= bytes;
		},
		held: () => held,
	};
}

export interface Upload {
	/** `null` = no body. Throws `too_large`, `unavailable` (no room) and `network` (the client left). */
	read(maxBytes: number): Promise<Uint8Array | null>;
	/** Gives back what was held. */
	release(): void;
}

export interface UploadOptions {
	request: IncomingMessage;
	budget: Budget;
	leaving: Leaving;
	/** Called before the first octet is read: the client may be waiting for leave. */
	onRead(): void;
}

/** Octets count as they arrive, not as they are announced: who announces much and sends nothing holds nothing. */
export function createUpload({ request, budget, leaving, onRead }: UploadOptions): Upload {
	let held = 0;
	return {
		read: async (maxBytes) => {
			const announced = Number(request.headers['content-length'] ?? 0);
			if (announced > maxBytes) throw tooLarge(maxBytes);
			onRead();
			return collect(request, leaving, (size) => {
				if (held + size > maxBytes) return tooLarge(maxBytes);
				if (!budget.take(size)) return noRoom();
				held += size;
				return null;
			});
		},
		release: () => {
			budget.give(held);
			held = 0;
		},
	};
}

/** Events rather than iteration: leaving a `for await` would destroy the request, and its answer with it. */
function collect(
	request: IncomingMessage,
	leaving: Leaving,
	refuse: (size: number) => ApiError | null,
): Promise<Uint8Array | null> {
	return new Promise((resolve, reject) => {
		const chunks: Buffer[] = [];
		const settle = (result: Uint8Array | ApiError | null) => {
			request.off('data', onData).off('end', onEnd);
			if (result instanceof ApiError) {
				request.pause();
				reject(result);
			} else resolve(result);
		};
		const onData = (chunk: Buffer) => {
			const refusal = refuse(chunk.length);
			if (refusal === null) chunks.push(chunk);
			else settle(refusal);
		};
		const onEnd = () => settle(chunks.length === 0 ? null : Buffer.concat(chunks));
		const onLeave = () => settle(new ApiError('network', 'The client left before its request was whole.'));
		request.on('data', onData).on('end', onEnd);
		leaving.onLeave(onLeave);
	});
}

function noRoom(): ApiError {
	return new ApiError('unavailable', 'Too many requests at once. Try again.', { retryAfterMs: 1000 });
}
