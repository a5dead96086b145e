/** The release of a mailing, whose answer may be lost. */
import { ApiError } from '../../../api/errors.js';
import type { MailingPlace } from '../../../jobs/mailing-place.js';
import { CliError } from '../../errors.js';
import { exits } from '../../exit.js';
import { shellWord } from '../../shell-word.js';

/** A release that nobody answered may have happened; only the mailing itself can tell. Exit 13 where it cannot. */
export async function releaseOnce(
	{ place: { mailings }, id, name }: { place: MailingPlace; id: string; name: string },
	staged: number,
): Promise<void> {
	try {
		await mailings.release(id, { expect_count: staged });
	} catch (error) {
		if (!(error instanceof ApiError) || !error.unanswered) throw error;
		const state = await mailings.status(id).then(
			(status) => status.state,
			() => null,
		);
		if (state === 'released') return;
		throw new CliError(
			'uncertain',
			exits.uncertain,
			`the mailing may or may not be released: ${error.message}`,
			{
				hint: `mailctl send resume ${shellWord(name)}: nobody gets it twice`,
				cause: error,
			},
		);
	}
}
