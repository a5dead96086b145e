import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesOf, newTexts, type RowTexts, TextReader, TextWriter } from '../../src/api/row-texts.js';

function written(texts: readonly string[], into: RowTexts = newTexts()): RowTexts {
	const writer = new TextWriter(into);
	for (const text of texts) writer.add(text);
	return into;
}

function read(texts: RowTexts): string[] {
	const reader = new TextReader(texts);
	return Array.from({ length: reader.count }, (_, index) => reader.at(index));
}

describe('texts stored as bytes', () => {
	it('decode to the original texts', () => {
		const text = fc.oneof(
			fc.string({ unit: 'grapheme' }),
			fc.constantFrom('', '\0', '\ufeffmark', '\r\n', '💌'),
		);
		fc.assert(
			fc.property(fc.array(text), (texts) => {
				expect(read(written(texts))).toEqual(texts);
			}),
		);
	});

	it('decode to the original texts even after the writer has allocated more memory', () => {
		const texts = Array.from({ length: 5_000 }, (_, n) =>
			n % 1_000 === 7 ? 'ß'.repeat(200_000) : `text ${n}`,
		);
		expect(read(written(texts))).toEqual(texts);
	});

	it('replace older texts in the same memory if the caller resets the text count to 0', () => {
		const old = written(Array.from({ length: 3_000 }, (_, n) => `something long ${n}`));
		const again = written(['a', 'b'], { ...old, count: 0 });
		expect(read(again)).toEqual(['a', 'b']);
		expect(bytesOf(again)).toBe(2);
		expect(again.bytes.buffer).toBe(old.bytes.buffer);
	});

	it('have U+FFFD in place of a lone surrogate', () => {
		expect(read(written(['a\ud83d', '\udc8cb']))).toEqual(['a\ufffd', '\ufffdb']);
	});
});
