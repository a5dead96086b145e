/** The refusal of a campaign, a name among them that stands for another one: why, and the way out. */
import { type Campaign, type CampaignSpec, type RequestsSpec, repeatedKey } from '../../../api/campaigns.js';
import { ApiError } from '../../../api/errors.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import { CliError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { explained } from '../../verbs/refusals.js';
import { lookUpCampaign } from '../campaigns/find.js';
import { sendHint } from './hints.js';
import type { CampaignPlace } from './place.js';

/** What opens or checks the campaign, with its refusal explained. `name`: null where the place makes one. */
export async function refusalExplained<T>(
	{ place: { campaigns }, name }: { place: CampaignPlace; name: string | null },
	spec: CampaignSpec | RequestsSpec,
	opening: Promise<T>,
): Promise<T> {
	try {
		return await explained(opening, { input: spec, hint: sendHint });
	} catch (error) {
		if (!(error instanceof ApiError) || error.code !== 'conflict' || repeatedKey(error) !== null) throw error;
		const other = name === null ? undefined : await lookUpCampaign(campaigns, name);
		throw isAnother(name ?? '', other, {
			why: other && (differenceOf(other, spec) ?? 'its content or options differ'),
			cause: error,
		});
	}
}

function isAnother(
	name: string,
	other: Campaign | undefined,
	{ why, cause }: { why?: string | undefined; cause?: unknown },
): CliError {
	const reason = why === undefined ? '' : `: ${why}`;
	return new CliError('conflict', exits.refused, `the name "${name}" stands for another campaign${reason}`, {
		hint: wayOut(name, other),
		cause,
	});
}

/** As far as a campaign tells; its texts are not among that. Null: nothing that it tells. */
function differenceOf(
	{ source, list_id, requests }: Campaign,
	spec: CampaignSpec | RequestsSpec,
): string | null {
	if (requests !== 'requests' in spec) return 'it was begun with other options';
	const listId = 'requests' in spec ? null : (spec.list_id ?? null);
	if (listId !== list_id) return 'it was begun with another list';
	const [before, now] = [source?.['sha256'], spec.source?.['sha256']];
	if (before !== now && spec.source?.['path'] === undefined) return 'it was begun with other rows';
	if (before !== now) return 'its file was another one, or has changed since';
	return null;
}

/** Only a campaign of which nothing was sent gives its name back. */
function wayOut(name: string, other: Campaign | undefined): Hint {
	if (other?.state !== 'staged') return 'give another --campaign';
	return [
		'give another --campaign, or ',
		mailctl('campaigns', 'cancel', name),
		' first: nothing of it was sent',
	];
}
