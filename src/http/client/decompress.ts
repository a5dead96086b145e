/** Content encodings undone, with a limit on what comes out: 300 KB of gzip can hold 300 MB. */

import { tooLarge } from './dispatch.js';
import { TransportFailure } from './failure.js';

type Decode = (
	body: Buffer,
	options: { maxOutputLength: number },
	done: (error: Error | null, decoded: Buffer) => void,
) => void;

/** Throws `TransportFailure` `too_large` over the limit, `garbled` for a broken or unknown encoding. */
export async function decompress(
	body: Buffer,
	encoding: string,
	limit: { maxBytes: number; origin: string },
) {
	const name = encoding.trim().toLowerCase();
	if (name === '' || name === 'identity' || body.length === 0) return body;
	const { brotliDecompress, gunzip, inflate } = await import('node:zlib');
	const decoders: Readonly<Record<string, Decode>> = {
		gzip: gunzip,
		'x-gzip': gunzip,
		deflate: inflate,
		br: brotliDecompress,
	};
	const decode = decoders[name];
	const refuse = (kind: 'garbled' | 'too_large', text: string, cause?: unknown) =>
		new TransportFailure(kind, `${limit.origin}: ${text}`, { written: true, cause });
	if (decode === undefined) throw refuse('garbled', 'the answer has an encoding nobody asked for');
	return new Promise<Buffer>((resolve, reject) => {
		decode(body, { maxOutputLength: limit.maxBytes }, (error, decoded) => {
			if (error === null) resolve(decoded);
			else if ('code' in error && error.code === 'ERR_BUFFER_TOO_LARGE')
				reject(refuse('too_large', tooLarge(limit.maxBytes), error));
			else reject(refuse('garbled', `the answer is broken ${name}`, error));
		});
	});
}
