/** Checks of the contents of a database, where one is readable. */
import type { DatabaseContents, Inspected } from './inspected.js';
import { type Check, skipped, type Verdict } from './model.js';

/** Makes a check out of a question to the contents; without any it is skipped. */
export type Look = (
	judge: (contents: DatabaseContents) => Promise<Verdict | readonly Verdict[]>,
) => Check['run'];

/** For the database as it was found. */
export function lookingInto(found: Inspected): Look {
	return (judge) => async () => {
		if (found.kind !== 'open') return skipped('there is no database to look into');
		const { contents } = found.database;
		return contents === null ? skipped('its schema is another one than this version has') : judge(contents);
	};
}
