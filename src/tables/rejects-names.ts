/** The names of rejects files: those of one source are a series, `people.csv.rejects.csv`, `people.csv.rejects-2.csv` … */
import { existsSync } from 'node:fs';
import { join, parse as parsePath } from 'node:path';

const series = /\.rejects(?:-(\d{1,9}))?\.csv$/;

export function nextRejectsPath(path: string): string {
	const found = series.exec(path);
	if (found === null) return `${path}.rejects.csv`;
	return `${path.slice(0, found.index)}.rejects-${Number(found[1] ?? 1) + 1}.csv`;
}

export function isSameSeries(one: string, other: string): boolean {
	const start = (path: string) => series.test(path) && path.replace(series, '');
	return start(one) !== false && start(one) === start(other);
}

/** A name that no file has: `bad-2.csv` for `bad.csv`; FILE where a shell would need quotes. */
export function freeName(path: string): string {
	const { dir, name, ext } = parsePath(path);
	for (let at = 2; ; at += 1) {
		const free = join(dir, `${name}-${at}${ext}`);
		if (!existsSync(free)) return /^[\w@.,:/+=%-]+$/.test(free) ? free : 'FILE';
	}
}
