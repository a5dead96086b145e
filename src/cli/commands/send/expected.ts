/** `--max-recipients` and `--expect-count`: how many a job may have. A dry run is held to them as the job is. */
import { UsageError } from '../../errors.js';
import { countOf } from './counts.js';
import type { SendOptions } from './options.js';

/** What is found, and what is allowed. */
export interface Found {
	/** Recipients, before suppression and without those left out. */
	found: number;
	/** What they are counted in: `the list`, `people.csv`. */
	counted: string;
	options: Pick<SendOptions, 'expectCount' | 'maxRecipients'>;
}

/** Throws `UsageError` for more recipients than are allowed, and for another number than is expected. */
export function assertExpected({ found, counted, options: { expectCount, maxRecipients } }: Found): void {
	const people = countOf(found, 'recipient');
	if (maxRecipients !== undefined && found > maxRecipients) {
		const most = maxRecipients.toLocaleString('en-US');
		throw new UsageError(`${people} are more than --max-recipients ${most}; nothing was released`);
	}
	if (expectCount === undefined || expectCount === found) return;
	const expected = expectCount.toLocaleString('en-US');
	throw new UsageError(`${counted} has ${people}, not ${expected}; nothing was released`, {
		hint: `--expect-count ${found} if that is right`,
	});
}
