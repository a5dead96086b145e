/** Files that go with a mail, in a line each: `invoice.pdf  application/pdf  12 KiB`. */

import { counted, sizeText } from './units.js';

/** In their order; none without files. */
export function attachmentLines(
	files: readonly { name: string; type: string; size: number }[] = [],
): string[] {
	return files.map(({ name, type, size }) => `${name}  ${type}  ${amountText(size)}`);
}

function amountText(size: number): string {
	return size < 1024 ? counted(size, 'byte') : sizeText(size);
}
