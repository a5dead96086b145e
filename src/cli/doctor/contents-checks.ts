/** Checks of the contents of a database, where one is readable. */
import { StoreError } from '../../api/errors.js';
import type { DatabaseContents, Inspected } from './inspection.js';
import { type Check, problem, skipped, type Verdict } from './model.js';

/** Makes a check out of a question to the contents; without any it is skipped. */
export type ContentsCheck = (
	judge: (contents: DatabaseContents) => Promise<Verdict | readonly Verdict[]>,
) => Check['run'];

/** Why the contents of a database are not checked, where `database.file` has told what is wrong with it. */
export function noContents({ kind }: Pick<Inspected, 'kind'>): Verdict {
	return skipped(kind === 'closed' ? 'the database cannot be opened' : 'there is no database to look into');
}

/** For the database as it was found. Damage is a problem of the first check that meets it; others are skipped for it. */
export function contentsChecks(found: Inspected): ContentsCheck {
	let isDamaged = false;
	const damaged = (error: unknown): Verdict => {
		if (!(error instanceof StoreError) || error.code !== 'damaged') throw error;
		if (isDamaged) return skipped('the database file is damaged');
		isDamaged = true;
		return problem(`this could not be looked at: ${error.message}`);
	};
	return (judge) => async () => {
		if (!('database' in found)) return noContents(found);
		const { contents } = found.database;
		return contents === null
			? skipped('its schema is another one than this version has')
			: judge(contents).catch(damaged);
	};
}
