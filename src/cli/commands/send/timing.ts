import type { CampaignPlan, PlannedTiming, Timing, TimingRequest } from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { localTime, parseDateTime } from '../../../api/datetime.js';
import { ApiError, listFieldErrors } from '../../../api/errors.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import type { Times } from '../../render/times.js';
import type { SendOptions } from './options.js';

/** Throws `UsageError` for a time that the service refuses, and `MissingExtension` where it plans nothing. */
export async function readTiming(
	cx: CommandContext,
	{ at, in: wait, window }: Pick<SendOptions, 'at' | 'in' | 'window'>,
): Promise<Timing> {
	if (at === undefined && wait === undefined && window === undefined) return {};
	if (at !== undefined && wait !== undefined)
		throw new UsageError('--at and --in both name a time; give one');
	const flag = at !== undefined ? '--at' : wait !== undefined ? '--in' : '--window';
	const request = {
		...(at !== undefined && { at }),
		...(wait !== undefined && { in_ms: wait }),
		...(window !== undefined && { window }),
	};
	const planned = await planOf(cx, flag, request).catch((error: unknown) => {
		const { path, message } = refusalOf(error);
		throw new UsageError(`--${path}: ${message}; nothing was sent`, { cause: error });
	});
	const { note, opens_at, ...timing } = planned;
	if (note === 'skipped')
		await cx.warn(
			`clocks of ${timing.time_zone} skip that time: it is ${sayTime(timing.starts_at, timing)} instead`,
		);
	if (note === 'repeated')
		await cx.warn(`clocks of ${timing.time_zone} show that time twice: the first is meant`);
	if (cx.dryRun && opens_at !== null) await cx.note(sayPlan(planned, cx.times) ?? '');
	return timing;
}

/** `flag`: the option that needs it. */
export async function planOf(
	cx: CommandContext,
	flag: string,
	request: TimingRequest,
): Promise<PlannedTiming> {
	return (await need(await cx.api(), 'audiences', flag)).plan(request, { signal: cx.signal });
}

/** The time of `--at` in words that mean the same on another day: `2026-12-01T09:00` for `tomorrow 9:00`. */
export async function fixedTime(cx: CommandContext, at: string): Promise<string> {
	if (!/^(today|tomorrow)\b/i.test(at.trim())) return at;
	const timing = await planOf(cx, '--at', { at });
	return sayTime(timing.starts_at, timing).replace(' ', 'T');
}

/** The field that is refused, and why; any other error is thrown again. */
export function refusalOf(error: unknown): { path: string; message: string } {
	const [first] =
		error instanceof ApiError && error.code === 'invalid' ? listFieldErrors(error.fields ?? {}) : [];
	if (first === undefined) throw error;
	return { path: first.path, message: first.message.replace(/\.$/, '') };
}

/**
 * `planned for 2026-12-01 09:00 Europe/Oslo (2026-12-01 03:00 UTC-5)`, with the time as tables show it where that is
 * another; null: it may leave now.
 */
export function sayPlan(
	plan: Pick<CampaignPlan | PlannedTiming, 'opens_at' | 'window' | 'time_zone'> | undefined,
	times: Times,
): string | null {
	if (plan === undefined || plan.opens_at === null) return null;
	const hours = plan.window == null ? '' : `, each day ${plan.window}`;
	const at = sayTime(plan.opens_at, plan);
	const here = times.moment(plan.opens_at);
	return `planned for ${at} ${plan.time_zone}${hours}${here.startsWith(at) ? '' : ` (${here})`}`;
}

/** `2026-12-01 09:00` in the zone of the plan. */
export function sayTime(at: string | undefined, { time_zone = 'UTC' }: { time_zone?: string }): string {
	const moment = at === undefined ? null : parseDateTime(at);
	return moment === null ? '' : localTime(moment, time_zone).slice(0, 16).replace('T', ' ');
}
