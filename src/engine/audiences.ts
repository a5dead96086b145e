import type { AudiencePart, Audiences, Campaign, PlannedTiming, TimingRequest } from '../api/campaigns.js';
import {
	formatDateTime,
	isTimeZone,
	lastMoment,
	type Micros,
	microsPerMs,
	opening,
	parseWindow,
} from '../api/datetime.js';
import { ApiError, type FieldError, type FieldErrors, invalid } from '../api/errors.js';
import { type CheckedAudience, type CheckedTiming, campaignFields } from '../api/messages.js';
import type { Uuid } from '../api/records.js';
import { isCondition, parseCondition } from '../api/schema/conditions.js';
import type { Reads } from '../store/operations.js';
import type { Store } from '../store/store.js';
import { resolveContent } from './contents.js';
import { checked, type EngineContext, found, refuse, seenBy } from './context.js';
import { parseLocalTime } from './rules/local-time.js';
import { noSuch } from './rules/subscribers.js';

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

export async function assertAudience(
	{ reads }: Pick<Store, 'reads'>,
	audience: CheckedAudience,
): Promise<void> {
	const errors: FieldErrors = {};
	const lists = { lists: audience.lists.slice(1), exclude_lists: audience.exclude_lists };
	for (const [key, ids] of Object.entries(lists))
		for (const id of ids)
			if ((await reads.getList({ id })) === null) errors[key] ??= noSuch(key, id)[key] ?? [];
	const wrong = audience.where.length === 0 ? [] : await conditionErrors(reads, audience.where);
	if (wrong.length > 0) errors['where'] = wrong;
	for (const key of ['where_opened', 'where_not_opened'] as const)
		for (const id of audience[key]) {
			const campaign = await campaignOf(reads, id);
			if (campaign === undefined) errors[key] ??= [refused(`There is no campaign ${id}.`)];
			// Retention has deleted the opens of this campaign, so `where_not_opened` would match everyone.
			else if (campaign.date_dropped !== undefined)
				errors[key] ??= [refused(`${sayDropped(campaign)}, together with their opens.`)];
		}
	if (Object.keys(errors).length > 0) throw invalid(errors);
}

async function conditionErrors(reads: Reads, conditions: readonly string[]): Promise<FieldError[]> {
	const { results } = await reads.pageFields({ page: 1, page_size: Number.MAX_SAFE_INTEGER });
	const variables = new Set(results.map(({ variable }) => variable));
	return conditions.flatMap((text) => {
		const parsed = parseCondition(text);
		if (!isCondition(parsed)) return [refused(`"${text}": ${parsed.message}.`)];
		const { variable } = parsed;
		const isKnown = variable === null || variables.has(variable);
		return isKnown ? [] : [refused(`"${text}": there is no field ${variable}.`)];
	});
}

async function campaignOf(reads: Reads, id: Uuid): Promise<Campaign | undefined> {
	return (await reads.pageCampaigns({ id, page: 1, page_size: 1, now: 0 })).results[0];
}

export async function assertKept({ reads }: Pick<Store, 'reads'>, id: Uuid): Promise<void> {
	const campaign = await campaignOf(reads, id);
	if (campaign?.date_dropped !== undefined) throw new ApiError('conflict', `${sayDropped(campaign)}.`);
}

function sayDropped({ key, date_dropped = '' }: Campaign): string {
	return `The messages of the campaign "${key}" were deleted on ${date_dropped.slice(0, 10)} (keep_messages)`;
}

function refused(message: string): FieldError {
	return { code: 'invalid', message };
}

export async function settledTiming(
	store: Pick<Store, 'reads'>,
	timing: CheckedTiming,
): Promise<CheckedTiming> {
	return { ...timing, time_zone: timing.time_zone ?? (await zoneOf(store)) };
}

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
		return refuse('window', `"${window}" is not a window, such as 09:00-18:00.`);
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
