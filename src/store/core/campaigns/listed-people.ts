/** Subscribers of a list on another deployment, staged under a campaign in parts. */

import type { AcceptCounts, Reject } from '../../../api/capabilities.js';
import { texts } from '../../../api/schema/texts.js';
import type { ListedPeople, ListedPerson, PeopleAck } from '../../campaigns.js';
import type { Sql } from '../sql.js';
import { countMessages } from '../submissions.js';
import { createResultLog } from './results.js';
import { type CampaignRow, maxListedRejects, noCounts } from './rows.js';
import {
	addToCounts,
	keepRejects,
	keptRejects,
	type RowOutcome,
	readStaging,
	stageMessages,
} from './staging.js';

/** Runs in one transaction of the caller. An address gets one message, however often it is listed. */
export async function addPeople(
	sql: Sql,
	campaign: CampaignRow,
	c: Omit<ListedPeople, 'campaign'>,
): Promise<PeopleAck> {
	const { list_id, part, people, now } = c;
	if (campaign.state !== 'staged') return { kind: 'closed', state: campaign.state };
	if (campaign.position > 0 || (await isOfOther(sql, campaign, list_id))) return { kind: 'other_rows' };
	const place = { campaign_seq: campaign.seq, list_id };
	const answer = async (row: CampaignRow, isWhole: boolean): Promise<PeopleAck> => {
		const { position, staged, suppressed, rejected } = row;
		const rejects = await keptRejects(sql, campaign.seq, list_id);
		return {
			kind: 'acknowledged',
			ack: { position, counts: { staged, suppressed, rejected }, rejects },
			isWhole,
		};
	};
	if (campaign.is_complete === 1) return await answer(campaign, true);
	const begun = part === 'first' ? await begin(sql, campaign, place) : campaign;
	const { counts, rejects } = await stagePeople(sql, begun, {
		people,
		now,
		kept: await keptRejects(sql, campaign.seq, list_id),
	});
	addToCounts(sql, campaign.seq, counts);
	keepRejects(sql, place, rejects);
	if (part === 'last') sql.write('UPDATE campaigns SET is_complete = 1 WHERE seq = ?', campaign.seq);
	return await answer({ ...begun, ...sumOf(begun, counts) }, part === 'last');
}

/** Whether its list was begun and not read to its end. */
export async function isListOpen(sql: Sql, { seq, is_complete, courier }: CampaignRow): Promise<boolean> {
	if (courier !== 'api' || is_complete === 1) return false;
	return (await sql.number('SELECT EXISTS (SELECT 1 FROM campaign_lists WHERE campaign_seq = ?)', seq)) === 1;
}

async function isOfOther(sql: Sql, { seq }: CampaignRow, list_id: number): Promise<boolean> {
	const others = 'SELECT EXISTS (SELECT 1 FROM campaign_lists WHERE campaign_seq = ? AND list_id <> ?)';
	return (await sql.number(others, seq, list_id)) === 1;
}

/** Nothing was released: what an earlier walk staged is deleted with its results. */
async function begin(
	sql: Sql,
	campaign: CampaignRow,
	{ campaign_seq, list_id }: { campaign_seq: number; list_id: number },
): Promise<CampaignRow> {
	sql.write('DELETE FROM campaign_results WHERE campaign_seq = ?', campaign_seq);
	const dropped = await sql.run('DELETE FROM messages WHERE lane = ? AND wake_at IS NOT NULL', campaign_seq);
	countMessages(sql, -dropped.changes);
	sql.write('UPDATE campaigns SET staged = 0, suppressed = 0, rejected = 0 WHERE seq = ?', campaign_seq);
	sql.write(
		'INSERT INTO campaign_lists (campaign_seq, list_id, after_id) VALUES (?, ?, 0) ON CONFLICT DO NOTHING',
		campaign_seq,
		list_id,
	);
	keepRejects(sql, { campaign_seq, list_id }, []);
	return { ...campaign, ...noCounts() };
}

async function stagePeople(
	sql: Sql,
	campaign: CampaignRow,
	{ people, now, kept }: Pick<ListedPeople, 'people' | 'now'> & { kept: readonly Reject[] },
): Promise<{ counts: AcceptCounts; rejects: Reject[] }> {
	const staging = await readStaging(sql, campaign, now);
	const log = createResultLog(sql, campaign);
	const counts = noCounts();
	const rejects = [...kept];
	const valid = people.filter(({ to_key }) => to_key !== null);
	const outcomes = await stageMessages(
		sql,
		valid.map(({ to_key, ...person }) => ({
			staging,
			candidate: {
				person,
				to_key: to_key ?? '',
				list_id: null,
				subscriber_id: null,
				is_active: null,
				given: {},
			},
		})),
	);
	let next = 0;
	for (const [row, person] of people.entries()) {
		const outcome = person.to_key === null ? notAnAddress(person) : outcomes[next];
		if (person.to_key !== null) next += 1;
		// It was staged before.
		if (outcome === undefined || (outcome.kind === 'rejected' && outcome.code === 'duplicate')) continue;
		counts[outcome.kind] += 1;
		log.add({ line: null, to: person.email, outcome });
		if (outcome.kind === 'rejected' && rejects.length < maxListedRejects)
			rejects.push({ row, code: outcome.code, error: outcome.error });
	}
	log.write();
	return { counts, rejects };
}

function notAnAddress({ email }: ListedPerson): RowOutcome {
	return { kind: 'rejected', code: 'invalid', error: `${email}: ${texts.email}` };
}

function sumOf(a: AcceptCounts, b: AcceptCounts): AcceptCounts {
	return {
		staged: a.staged + b.staged,
		suppressed: a.suppressed + b.suppressed,
		rejected: a.rejected + b.rejected,
	};
}
