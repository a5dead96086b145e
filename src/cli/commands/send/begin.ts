/** What every job needs before it is opened: consent, a mail server, a name, and a place for its results. */
import type { MailingPlace } from '../../../jobs/mailing-place.js';
import type { CommandContext } from '../../context.js';
import { assertCanDeliver } from './deliver.js';
import { assertConsent } from './job.js';
import { jobName } from './name.js';
import type { SendOptions } from './options.js';
import { mailingPlace } from './place.js';
import { assertResults, inputsOf, knownMailing } from './results-place.js';

/** Where the job is kept, and under which name. */
export interface Beginning {
	place: MailingPlace;
	name: string;
	/** Nobody gave the name: it has to be told. */
	isMadeUp: boolean;
}

/** Throws `UsageError` before anything is staged. `of`: what is sent to, in a sentence. */
export async function beginJob(cx: CommandContext, options: SendOptions, of: string): Promise<Beginning> {
	const place = await mailingPlace(cx);
	assertConsent(cx, options, of);
	await assertCanDeliver(cx, options);
	const name = jobName(options);
	await assertResults(options.results, {
		inputs: inputsOf(options),
		mailing: () => knownMailing(place.mailings, options.job),
	});
	return { place, name, isMadeUp: options.job === undefined };
}
