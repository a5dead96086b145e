/** Strings from the corpora that often break parsers; empty if the corpora are missing. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { corpora } from './support.js';

export function corpusStrings(): string[] {
	const file = join(dirname(corpora), 'strings/blns.json');
	const texts: string[] = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];
	return texts.map((text) => text.replaceAll('\0', ''));
}
