/** `--at`, `--in` and `--window`: when the messages of a campaign may leave, by the clock of the database. */

import type { CampaignPlan, CampaignStatus, Timing } from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { localTime, parseDateTime } from '../../../api/datetime.js';
import { ApiError, listFieldErrors } from '../../../api/errors.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import type { Times } from '../../render/times.js';
import type { SendOptions } from './options.js';
import { describe, documentOf, sender } from './report.js';

/** Throws `UsageError` for the past and for what is no time, and `MissingExtension` where the service plans nothing. */
export async function readTiming(
	cx: CommandContext,
	{ at, in: wait, window }: Pick<SendOptions, 'at' | 'in' | 'window'>,
): Promise<Timing> {
	if (at === undefined && wait === undefined && window === undefined) return {};
	if (at !== undefined && wait !== undefined)
		throw new UsageError('--at and --in both name a time; give one');
	const flag = at !== undefined ? '--at' : wait !== undefined ? '--in' : '--window';
	const audiences = await need(await cx.api(), 'audiences', flag);
	const request = {
		...(at !== undefined && { at }),
		...(wait !== undefined && { in_ms: wait }),
		...(window !== undefined && { window }),
	};
	const planned = await audiences.plan(request, { signal: cx.signal }).catch((error: unknown) => {
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
	if (cx.dryRun && opens_at !== null) await cx.note(sayOpening({ ...planned, opens_at }, cx.times));
	return timing;
}

/** Why a campaign cannot begin at that time; null: it can. */
export async function whyNotAt(cx: CommandContext, at: string): Promise<string | null> {
	const audiences = await need(await cx.api(), 'audiences', '--at');
	try {
		await audiences.plan({ at }, { signal: cx.signal });
		return null;
	} catch (error) {
		return refusalOf(error).message;
	}
}

/** The zone whose clock `--at` and `--window` follow. */
export async function zoneOfTimes(cx: CommandContext): Promise<string> {
	const audiences = await need(await cx.api(), 'audiences', '--at');
	return (await audiences.plan({}, { signal: cx.signal })).time_zone;
}

/** The time of `--at` in words that mean the same on another day: `2026-12-01T09:00` for `tomorrow 9:00`. */
export async function fixedTime(cx: CommandContext, at: string): Promise<string> {
	if (!/^(today|tomorrow)\b/i.test(at.trim())) return at;
	const audiences = await need(await cx.api(), 'audiences', '--at');
	const timing = await audiences.plan({ at }, { signal: cx.signal });
	return sayTime(timing.starts_at, timing).replace(' ', 'T');
}

/** The field that is refused, and why; any other error is thrown again. */
function refusalOf(error: unknown): { path: string; message: string } {
	const [first] =
		error instanceof ApiError && error.code === 'invalid' ? listFieldErrors(error.fields ?? {}) : [];
	if (first === undefined) throw error;
	return { path: first.path, message: first.message.replace(/\.$/, '') };
}

/** Whether it may not leave yet. */
export function isAhead(plan: CampaignPlan | undefined): boolean {
	return plan !== undefined && plan.opens_at !== null;
}

/**
 * `planned for 2026-12-01 09:00 Europe/Oslo (2026-12-01 03:00 UTC-5)`, with the time as tables show it where that is
 * another; null: it may leave now.
 */
export function sayPlan(plan: CampaignPlan | undefined, times: Times): string | null {
	if (plan === undefined || plan.opens_at === null) return null;
	return sayOpening({ ...plan, opens_at: plan.opens_at }, times);
}

/** The same of a campaign that is not released yet; null too where it waits for its hours alone. */
export function sayStart(plan: CampaignPlan | undefined, times: Times): string | null {
	if (plan === undefined || plan.starts_at === null) return null;
	return sayOpening({ ...plan, opens_at: plan.starts_at }, times);
}

function sayOpening(
	plan: { opens_at: string; window?: string | null; time_zone: string },
	times: Times,
): string {
	const hours = plan.window == null ? '' : `, each day ${plan.window}`;
	const here = times.moment(plan.opens_at);
	const at = sayTime(plan.opens_at, plan);
	const shown = here.startsWith(at) ? '' : ` (${here})`;
	return `planned for ${at} ${plan.time_zone}${hours}${shown}`;
}

function sayTime(at: string | undefined, { time_zone = 'UTC' }: { time_zone?: string }): string {
	const moment = at === undefined ? null : parseDateTime(at);
	return moment === null ? '' : localTime(moment, time_zone).slice(0, 16).replace('T', ' ');
}

/** Looks whether the hours of a campaign are over while it is being sent. */
export interface WindowWatch {
	/** Aborted once nothing more of it may leave. */
	readonly signal: AbortSignal;
	/** When it goes on, for people; null: it may go on now. */
	readonly reason: string | null;
	stop(): void;
}

/** A worker that finds the window closed notes when it opens; nothing is asked about a campaign without a window. */
export async function watchWindow(cx: CommandContext, campaign: string | null): Promise<WindowWatch> {
	const controller = new AbortController();
	let reason: string | null = null;
	const campaigns = (await (await cx.api()).capabilities()).ext.campaigns;
	const plan = async () =>
		campaign === null ? undefined : (await campaigns?.status(campaign, { signal: cx.signal }))?.plan;
	const hasWindow = ((await plan())?.window ?? null) !== null;
	const look = async () => {
		const now = await plan();
		if (now?.opens_at == null) return;
		reason = `its hours are over, and it goes on at ${sayTime(now.opens_at, now)} ${now.time_zone}`;
		controller.abort();
	};
	const timer = hasWindow ? setInterval(() => void look().catch(() => undefined), lookEveryMs) : undefined;
	return {
		signal: controller.signal,
		get reason() {
			return reason;
		},
		stop: () => clearInterval(timer),
	};
}

const lookEveryMs = 1_000;

/** Says what sends it then; the command does not wait. */
export async function leavePlanned(cx: CommandContext, status: CampaignStatus): Promise<ExitCode> {
	const { plan, key, counts } = status;
	await cx.out.document(documentOf(status), `released: ${describe(counts)}`);
	await cx.note(sayPlan(plan, cx.times) ?? '');
	await cx.hint([
		...['nothing leaves before; ', await sender(cx), ' has to run then, '],
		...[mailctl('campaigns', 'cancel', key), ' drops it'],
	]);
	return exits.done;
}
