/** On the embedded engine `send` works off its own messages; a server of ours is waited for, others tell nothing. */

import type { Messages } from '../../../api/capabilities.js';
import type { DeliveryCounts } from '../../../api/delivery-counts.js';
import { ApiError } from '../../../api/errors.js';
import type { Uuid } from '../../../api/records.js';
import type { DeliveryScope, DeliverySummary } from '../../connection.js';
import type { CommandContext } from '../../context.js';
import { CliError, UsageError } from '../../errors.js';
import { classify } from '../../exit.js';
import { limitedUntil, settledOf, troublesOf } from './counts.js';
import { saysHowToLook, sender } from './goes-on.js';
import { whatHolds } from './held.js';
import type { SendOptions } from './options.js';

/** Refuses before anything is accepted: without a mail server the messages would wait for ever. */
export async function assertCanDeliver(
	cx: CommandContext,
	options: Pick<SendOptions, 'wait'>,
): Promise<void> {
	const { local } = await cx.connection();
	if (local === null || options.wait === false) return;
	if ((await local.status()).smtp_url === null) throw noSmtp();
}

/** What bulk mail carries that its sender should know of before it leaves. */
export async function warnOfLinks(
	cx: CommandContext,
	options: { bulk: boolean; list?: string | undefined },
): Promise<void> {
	const { local } = await cx.connection();
	if (!options.bulk) {
		if (options.list !== undefined)
			await cx.hint('without --bulk these mails carry no List-Unsubscribe header');
		return;
	}
	if (local === null) return;
	if ((await local.status()).public_url !== null) return;
	await cx.warn('links to unsubscribe point to this machine: nobody else can follow them');
	await cx.hint('mailctl engine init --public-url https://mail.example.com');
}

/** How to deliver, and where to look when that takes too long. */
export type DeliverOptions = Pick<SendOptions, 'wait' | 'waitTimeout' | 'rate' | 'connections' | 'job'> & {
	/** The messages of a submission. */
	ids?: readonly Uuid[];
};

/** Delivers the scope, or waits until a server has. `null`: nobody waits, or the service does not tell. */
export async function deliverNow(
	cx: CommandContext,
	scope: DeliveryScope,
	total: number,
	options: DeliverOptions,
): Promise<DeliverySummary | null> {
	const { api } = await cx.connection();
	const messages = (await api.capabilities()).ext.messages;
	if (messages === undefined || scope === null) return null;
	if (options.wait === false) {
		await cx.hint(`accepted and queued; ${await sender(cx)} sends it`);
		return null;
	}
	const summary = await deliver(cx, messages, { scope, total, options });
	if (summary.kind !== 'stalled') return summary;
	const waited = { scope, ids: options.ids ?? [], signal: cx.signal };
	// That the wait ran out is what is told, even where nobody says why.
	return { ...summary, reason: await whatHolds(messages, waited).catch(() => null) };
}

interface Wait {
	scope: NonNullable<DeliveryScope>;
	total: number;
	options: DeliverOptions;
}

async function deliver(
	cx: CommandContext,
	messages: Messages,
	{ scope, total, options }: Wait,
): Promise<DeliverySummary> {
	const { local } = await cx.connection();
	const progress = cx.progress('sending', total);
	const onProgress = (counts: DeliveryCounts) => progress.update(settledOf(counts), troublesOf(counts));
	const { signal } = cx;
	try {
		if (local === null) {
			const { watchSending } = await import('./watch.js');
			const elapsedMs = () => performance.now();
			return await watchSending(messages, scope, {
				signal,
				stallMs: options.waitTimeout,
				onProgress,
				elapsedMs,
			}).catch((error: unknown) =>
				accepted(error, options.job === undefined ? null : saysHowToLook(options.job)),
			);
		}
		return await local.deliver({
			scope,
			until: 'settled',
			signal,
			stallMs: options.waitTimeout,
			...(options.rate !== undefined && { rate: parseRate(options.rate) }),
			...(options.connections !== undefined && { connections: options.connections }),
			onProgress,
			onLimited: (until) => {
				void cx.warn(limitedUntil(until));
			},
		});
	} finally {
		progress.stop();
	}
}

/** Whoever reads only that the network failed would send again. */
function accepted(error: unknown, aboutJob: string | null): never {
	if (!(error instanceof ApiError)) throw error;
	const { code, exit, retryable } = classify(error);
	const message = `the messages are accepted, but what became of them is not known: ${error.message}`;
	const hint = aboutJob ?? 'mailctl messages list shows them; do not send them again';
	throw new CliError(code, exit, message, { hint, retryable, cause: error });
}

/** `10`, `10/s` or `600/m`, as messages a second. */
export function parseRate(text: string): number {
	const [, number, unit] = /^(\d+(?:\.\d+)?)(?:\/(s|m|h))?$/.exec(text) ?? [];
	const perSecond = Number(number) / (unit === 'h' ? 3600 : unit === 'm' ? 60 : 1);
	if (number === undefined || !(perSecond > 0))
		throw new UsageError(`--rate "${text}" is no rate, such as 10/s`);
	return perSecond;
}

export function noSmtp(): CliError {
	return new UsageError('no mail server is configured', {
		hint: 'mailctl engine init --smtp smtp://user@host:587 --smtp-password-file FILE',
	});
}
