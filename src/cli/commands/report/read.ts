import { need } from '../../../api/capabilities.js';
import { addDays, type Day, formatWireDate, parseWireDate } from '../../../api/datetime.js';
import { ApiError } from '../../../api/errors.js';
import type { Report, ReportQuery, Uuid } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { given, parseDays } from '../../frame/values.js';
import type { CampaignHead, DetailedReport } from '../../render/report-model.js';
import { explained } from '../../verbs/refusals.js';
import { isUuid, missing } from '../../verbs/resolve.js';
import { detailOf, findCampaign, leftOutOf, listNames, lookUpCampaign } from '../campaigns/record.js';
import type { ReportOptions } from '../report.js';

type Asked = Pick<ReportOptions, 'from' | 'to' | 'last' | 'campaign' | 'event' | 'tag' | 'human'>;

export async function campaignIdOf(cx: CommandContext, text: string | undefined): Promise<Uuid | undefined> {
	if (text === undefined || isUuid(text)) return text;
	const campaigns = await need(await cx.api(), 'campaigns', 'a campaign by its name');
	return (await findCampaign(cx, campaigns, text)).id;
}

export async function readReport(cx: CommandContext, asked: Asked): Promise<Report> {
	const { campaign, event, tag, human } = asked;
	const days = asked.last === undefined ? null : parseDays(asked.last, '--last');
	const api = await cx.api();
	// Refuse before any request, because a report that ignores an option would be wrong.
	const wanted = tag !== undefined ? '--tag' : human ? '--human' : null;
	const ours = campaign === undefined ? undefined : (await api.capabilities()).ext.reports;
	const reports = wanted === null ? ours : await need(api, 'reports', wanted);
	// mailctl reports a whole campaign and refuses unknown UUIDs. Other services report days, and zeros for any UUID.
	const hasDays = (asked.from ?? asked.to ?? asked.last) !== undefined;
	if (campaign !== undefined && reports === undefined && !hasDays)
		await cx.note('this service reports the last 7 days; --from and --to choose others');
	const to = days === null ? asked.to : (asked.to ?? (await today(cx)));
	const from = days === null || to === undefined ? asked.from : addDays(to, 1 - days);
	const query: ReportQuery = {
		...given({ date_from: from && formatWireDate(from), date_to: to && formatWireDate(to) }),
		...given({ campaign_unique_id: campaign }),
		...(event.length > 0 && { event_types: event }),
	};
	const call = { signal: cx.signal };
	const more = { ...query, ...given({ tag }), human };
	const ask = () => (reports === undefined ? api.report(query, call) : reports.report(more, call));
	return explained(cx.killable(ask), { input: query }).catch((error: unknown) => {
		if (campaign !== undefined && error instanceof ApiError && error.code === 'not_found')
			throw missing('campaign', campaign, mailctl('campaigns', 'list'));
		throw error;
	});
}

/** Returns the service's current day, with which its report without dates (7 or 8 rows) ends. */
async function today(cx: CommandContext): Promise<Day> {
	const { data } = await (await cx.api()).report({}, { signal: cx.signal });
	const days = data.flatMap(({ date }) => parseWireDate(date) ?? []).sort();
	const last = days.at(-1);
	if (last !== undefined) return last;
	throw new CliError('bad_answer', exits.server, 'the report of this service has no days', {
		hint: 'give --to DATE',
	});
}

/** Null if options narrow the report to some messages, or for another service. `lists`: adds their growth. */
export async function readDetails(
	cx: CommandContext,
	{ campaign, ...asked }: Asked,
	{ data }: Report,
	lists = false,
): Promise<DetailedReport | null> {
	const { reports, campaigns } = (await (await cx.api()).capabilities()).ext;
	if (reports === undefined || asked.tag !== undefined || asked.human || asked.event.length > 0) return null;
	const [first, last] = [data[0]?.date, data.at(-1)?.date];
	const hasDays = campaign === undefined || (asked.from ?? asked.to ?? asked.last) !== undefined;
	const call = { signal: cx.signal };
	const details = await reports.details(
		{
			...given({ campaign_unique_id: campaign }),
			...(lists && { lists }),
			...(hasDays && first !== undefined && last !== undefined && { date_from: first, date_to: last }),
		},
		call,
	);
	const links = campaign === undefined ? [] : (await reports.links(campaign, call)).results;
	const status = campaign === undefined ? undefined : await campaigns?.status(campaign, call);
	return { details, links, replies: status?.replies ?? [], isOfDays: hasDays };
}

export async function readHead(cx: CommandContext, id: Uuid | undefined): Promise<CampaignHead | null> {
	if (id === undefined) return null;
	const { campaigns } = (await (await cx.api()).capabilities()).ext;
	const call = { signal: cx.signal };
	const found = campaigns && (await lookUpCampaign(campaigns, id, call));
	if (campaigns === undefined || found === undefined) return null;
	const detail = detailOf(found, await campaigns.status(id, call));
	const { name, subject, plan, messages, recipients } = detail;
	const { accepted = 0, bounced = 0, deferred = 0, failed = 0, uncertain = 0 } = messages;
	const waiting = (messages.staged ?? 0) + (messages.queued ?? 0) + (messages.leased ?? 0);
	const sent = accepted + (messages.sent ?? 0);
	// A cancellation before the release deletes messages, so compute their number.
	const kept = sent + waiting + bounced + deferred + failed + uncertain;
	const leftOut = leftOutOf(detail);
	const canceled = Math.max(messages.canceled ?? 0, recipients - leftOut - kept);
	const starts = plan?.opens_at ?? plan?.starts_at ?? detail.date_released;
	return {
		...{ name, id, subject, lists: await listNames(cx, detail), sender: found.from ?? null },
		date_released: detail.date_released,
		recipients: {
			...{ total: kept + canceled + leftOut, sent, waiting, deferred, bounced, failed, uncertain, canceled },
			left_out: leftOut,
		},
		bouncedLater: Math.min(bounced, Math.max(0, detail.sent - sent)),
		sentOn: detail.date_released === null || starts === null ? 'not yet' : cx.times.moment(starts),
	};
}
