import { counted, sizeText } from './units.js';

export function attachmentLines(
	files: readonly { name: string; type: string; size: number }[] = [],
): string[] {
	return files.map(({ name, type, size }) => `${name}  ${type}  ${amountText(size)}`);
}

function amountText(size: number): string {
	return size < 1024 ? counted(size, 'byte') : sizeText(size);
}
