import type { AudiencePart, Audiences, Campaign, PlannedTiming, TimingRequest } from '../api/campaigns.js';
import { formatDateTime, isTimeZone, lastMoment, type Micros, microsPerMs } from '../api/datetime.js';
import { ApiError, type FieldError, type FieldErrors, invalid } from '../api/errors.js';
import { type CheckedAudience, type CheckedTiming, campaignFields } from '../api/messages.js';
import type { Uuid } from '../api/records.js';
import { isCondition, parseCondition } from '../api/schema/conditions.js';
import { opening, parseWindow } from '../api/schema/sending-times.js';
import type { Store } from '../store/store.js';
import { resolveContent } from './contents.js';
import { checked, type EngineContext, found, refuse, seenBy } from './context.js';
import { noSuch } from './rules/errors.js';
import { parseLocalTime } from './rules/local-time.js';

const partSize = 20_000;
const mostLeftOut = 1_000;

export function createAudiences(context: EngineContext): Audiences {
	const { store, clock } = context;
	return {
		foresee: async (spec, { list_id, after = 0 }): Promise<AudiencePart> => {
			const campaign = checked(campaignFields.parse(spec));
			await assertAudience(store, campaign.audience);
			const { variables } = await resolveContent(context, campaign);
			const { time_zone } = await settledTiming(store, campaign.timing);
			const part = await store.reads.foreseeAudience({
				type: campaign.type,
				used: [...variables],
				context: campaign.context,
				is_strict: campaign.strict_vars,
				now: clock.now(),
				audience: campaign.audience,
				...{ list_id, after, limit: partSize, time_zone: time_zone ?? 'UTC' },
			});
			return found(part);
		},
		plan: async (request) => plan(request, { now: clock.now(), timeZone: await zoneOf(store) }),
		leftOut: async (id, { after = 0, limit = mostLeftOut }, call) => {
			const slice = { id, after, limit: Math.min(Math.max(limit, 1), mostLeftOut) };
			const part = found(await store.reads.sliceLeftOut({ ...slice, ...seenBy(call) }));
			if (part.results.length === 0) await assertKept(store, id);
			return part;
		},
	};
}

export async function assertAudience(store: Pick<Store, 'reads'>, audience: CheckedAudience): Promise<void> {
	const errors: FieldErrors = {
		...(await listErrors(store, 'lists', audience.lists.slice(1))),
		...(await listErrors(store, 'exclude_lists', audience.exclude_lists)),
		...(await conditionErrors(store, audience.where)),
		...(await campaignErrors(store, 'where_opened', audience.where_opened)),
		...(await campaignErrors(store, 'where_not_opened', audience.where_not_opened)),
	};
	if (Object.keys(errors).length > 0) throw invalid(errors);
}

export async function settledTiming(
	store: Pick<Store, 'reads'>,
	timing: CheckedTiming,
): Promise<CheckedTiming> {
	return { ...timing, time_zone: timing.time_zone ?? (await zoneOf(store)) };
}

/** A mail at nine is at nine where the sender is. */
async function zoneOf({ reads }: Pick<Store, 'reads'>): Promise<string> {
	const { time_zone } = await reads.getSettings();
	const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
	return time_zone ?? (isTimeZone(timeZone) ? timeZone : 'UTC');
}

function plan(
	{ at, in_ms, window }: TimingRequest,
	{ now, timeZone }: { now: Micros; timeZone: string },
): PlannedTiming {
	const hours = window === undefined ? null : parseWindow(window);
	if (window !== undefined && hours === null)
		return refuse('window', `"${window}" is no window, such as 09:00-18:00.`);
	const local = at === undefined ? null : parseLocalTime(at, { now, timeZone });
	if (local?.kind === 'invalid') return refuse('at', local.message);
	const asked = local?.at ?? (in_ms === undefined ? null : now + in_ms * microsPerMs);
	const starts = asked === null ? null : Math.min(asked, lastMoment);
	if (local !== null && local.at <= now)
		return refuse('at', `"${at}" is in the past (${formatDateTime(local.at).slice(0, 19)}Z).`);
	const opens = hours === null ? (starts ?? now) : opening(hours, timeZone, starts ?? now);
	return {
		...(starts !== null && { starts_at: formatDateTime(starts) }),
		...(window !== undefined && { window }),
		time_zone: timeZone,
		opens_at: opens > now ? formatDateTime(opens) : null,
		note: local === null || local.kind === 'once' ? null : local.kind,
	};
}

async function listErrors(
	{ reads }: Pick<Store, 'reads'>,
	key: string,
	ids: readonly number[],
): Promise<FieldErrors> {
	for (const id of ids) if ((await reads.getList({ id })) === null) return noSuch(key, id);
	return {};
}

async function conditionErrors(
	{ reads }: Pick<Store, 'reads'>,
	conditions: readonly string[],
): Promise<FieldErrors> {
	if (conditions.length === 0) return {};
	const { results } = await reads.pageFields({ page: 1, page_size: Number.MAX_SAFE_INTEGER });
	const variables = new Set(results.map(({ variable }) => variable));
	const errors = conditions.flatMap((text) => {
		const parsed = parseCondition(text);
		if (!isCondition(parsed)) return [refused(`"${text}": ${parsed.message}.`)];
		const { variable } = parsed;
		return variable === null || variables.has(variable)
			? []
			: [refused(`"${text}": there is no field ${variable}.`)];
	});
	return errors.length === 0 ? {} : { where: errors };
}

async function campaignErrors(
	{ reads }: Pick<Store, 'reads'>,
	key: string,
	ids: readonly string[],
): Promise<FieldErrors> {
	for (const id of ids) {
		const { results } = await reads.pageCampaigns({ id, page: 1, page_size: 1, now: 0 });
		const [campaign] = results;
		if (campaign === undefined) return { [key]: [refused(`There is no campaign ${id}.`)] };
		// Without their opens all recipients count as having opened nothing, and would get the mail.
		if (campaign.date_dropped !== undefined)
			return { [key]: [refused(`${sayDropped(campaign)}, and their opens with them.`)] };
	}
	return {};
}

export async function assertKept({ reads }: Pick<Store, 'reads'>, id: Uuid): Promise<void> {
	const { results } = await reads.pageCampaigns({ id, page: 1, page_size: 1, now: 0 });
	const [campaign] = results;
	if (campaign?.date_dropped !== undefined) throw new ApiError('conflict', `${sayDropped(campaign)}.`);
}

function sayDropped({ key, date_dropped = '' }: Pick<Campaign, 'key' | 'date_dropped'>): string {
	return `The messages of the campaign "${key}" were deleted on ${date_dropped.slice(0, 10)} (keep_messages)`;
}

function refused(message: string): FieldError {
	return { code: 'invalid', message };
}
