/** Where the demonstration's files are: beside the sources, and copied into the build. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The path of `people.csv` or `offer.html`. */
export function demoFile(name: string): string {
	// In the build this module may be in any file of dist/ or of a folder in it.
	const found = ['./', './demo/', '../demo/']
		.map((folder) => new URL(`${folder}${name}`, import.meta.url))
		.find((url) => existsSync(url));
	if (found === undefined) throw new Error(`the demonstration's ${name} is missing from this installation`);
	return fileURLToPath(found);
}
