/** Opens a job under its name, and says what differs when the name stands for another mailing. */
import type { MailingSpec, Session } from '../../../api/capabilities.js';
import { ApiError } from '../../../api/errors.js';
import type { Mailing, RequestsSpec } from '../../../api/mailings.js';
import type { MailingPlace } from '../../../jobs/mailing-place.js';
import type { CommandContext } from '../../context.js';
import { CliError } from '../../errors.js';
import { exits } from '../../exit.js';
import { explained } from '../../refusals.js';
import { shellWord } from '../../shell-word.js';
import { sendHint } from './hints.js';

/** The job, or where it stood. Refusals are explained as those of a send call; exit 5 for a name that is taken. */
export async function openJob(
	cx: CommandContext,
	{ mailings }: MailingPlace,
	{ name, spec }: { name: string; spec: MailingSpec | RequestsSpec },
): Promise<Session> {
	try {
		return await explained(mailings.open(name, spec), { input: spec, hint: sendHint });
	} catch (error) {
		if (!(error instanceof ApiError) || error.code !== 'conflict') throw error;
		const { results } = await mailings.page({ key: name, page_size: 1 });
		const other = results.find(({ key }) => key === name);
		const why = other === undefined ? '' : `: ${differenceOf(other, spec)}`;
		throw new CliError('conflict', exits.refused, `the job "${name}" stands for another mailing${why}`, {
			hint: await wayOut(cx, name, other),
			cause: error,
		});
	}
}

/** As far as a mailing tells; its texts are not among that. */
function differenceOf({ source, list_id, requests }: Mailing, spec: MailingSpec | RequestsSpec): string {
	if (requests !== 'requests' in spec) return 'it was begun with other options';
	const listId = 'requests' in spec ? null : (spec.list_id ?? null);
	if (listId !== list_id) return 'it was begun with another list';
	const [before, now] = [source?.['sha256'], spec.source?.['sha256']];
	if (before !== now) return 'its file was another one, or has changed since';
	if (before === undefined && source !== null) return 'what came from standard input cannot be compared';
	return 'its content or options differ';
}

/** Names are given back by what nobody got anything of; a ledger of this machine keeps them. */
async function wayOut(cx: CommandContext, name: string, other: Mailing | undefined): Promise<string> {
	const { ext } = await (await cx.api()).capabilities();
	if (other?.state !== 'staged' || ext.mailings === undefined) return 'give another --job';
	return `give another --job, or mailctl send cancel ${shellWord(name)} first: nothing of it was sent`;
}
