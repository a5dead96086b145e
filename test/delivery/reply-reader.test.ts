import { describe, expect, it } from 'vitest';
import { createReplyReader } from '../../src/delivery/reply.js';

const read = (...chunks: string[]) => {
	const reader = createReplyReader(100);
	return chunks.map((chunk) => reader.read(Buffer.from(chunk)));
};

describe('replies', () => {
	it.each([
		['one', ['250 Ok\r\n'], [['250 Ok']]],
		['one without text', ['250\r\n'], [['250']]],
		['several in a packet', ['250 a\r\n354 b\r\n'], [['250 a', '354 b']]],
		['one in several packets', ['25', '0 O', 'k\r', '\n'], [[], [], [], ['250 Ok']]],
		['of several lines', ['250-a\r\n250-b\r\n', '250 c\r\n'], [[], ['250-a\n250-b\n250 c']]],
		['with bare line ends', ['250-a\n250 b\n'], [['250-a\n250 b']]],
		['without a code', ['hello\r\n250 Ok\r\n'], [['hello', '250 Ok']]],
		['with empty lines between', ['\r\n250 Ok\r\n\r\n'], [['250 Ok']]],
	])('are parsed: %s', (_name, chunks, replies) => {
		expect(read(...chunks)).toEqual(replies);
	});

	it('keep a character that packets split', () => {
		const reader = createReplyReader(100);
		const bytes = Buffer.from('250 é\r\n');
		expect([reader.read(bytes.subarray(0, 5)), reader.read(bytes.subarray(5))]).toEqual([[], ['250 é']]);
	});

	it.each([
		['a line without an end', ['250 ', 'x'.repeat(100)]],
		['continuation lines without an end', Array.from({ length: 20 }, () => '250-again\r\n')],
	])('are too large: %s', (_name, chunks) => {
		const reader = createReplyReader(100);
		expect(reader.read(Buffer.from('250 Ok\r\n'))).toEqual(['250 Ok']);
		expect(reader.isTooLarge).toBe(false);
		for (const chunk of chunks) reader.read(Buffer.from(chunk));
		expect(reader.isTooLarge).toBe(true);
	});

	it('of a server that hung up count if they refuse', () => {
		const reader = createReplyReader(100);
		reader.read(Buffer.from('250 Ok\r\n550 5.1.1 No su'));
		expect(reader.lastWords()).toBe('550 5.1.1 No su');
		const other = createReplyReader(100);
		other.read(Buffer.from('250 O'));
		expect(other.lastWords()).toBeNull();
	});
});
