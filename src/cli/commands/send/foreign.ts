/** Jobs on a deployment that keeps none: a ledger of this machine, and this command makes the calls itself. */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { usedVariables } from '../../../content/variable-names.js';
import type { ForeignDelivered } from '../../../jobs/foreign/mailings/sending.js';
import { createForeignMailings, type ForeignMailings } from '../../../jobs/foreign/mailings.js';
import type { SeatCounts } from '../../../jobs/foreign/seats.js';
import type { MailingDelivery, MailingOutcome, MailingPlace } from '../../../jobs/mailing-place.js';
import type { Connection } from '../../connection.js';
import type { CommandContext } from '../../context.js';
import { CliError } from '../../errors.js';
import { classify, exits } from '../../exit.js';
import { shellWord } from '../../shell-word.js';
import { sayWhyFailed } from './why-failed.js';

/** Requests at a time unless `--connections` says otherwise. */
const defaultConnections = 8;

/** Ledgers are let go when the command ends. */
export async function foreignPlace(cx: CommandContext): Promise<MailingPlace> {
	const { api, target } = await cx.connection();
	const mailings = createForeignMailings(api, {
		folder: cx.paths.jobs,
		deployment: nameOf(target),
		usedVariables,
		newId: randomUUID,
		clock: cx.clock,
		sleep: pause,
	});
	cx.atEnd(() => mailings.close());
	return { mailings, deliver: (id, how) => deliver(cx, mailings, id, how) };
}

function nameOf(target: Connection['target']): string {
	return target.kind === 'remote' ? target.baseUrl.replace(/\/+$/, '') : target.url;
}

async function pause(ms: number, signal?: AbortSignal): Promise<void> {
	// The timer's own error says "aborted"; the signal's reason says by whom.
	await wait(ms, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
}

async function deliver(
	cx: CommandContext,
	mailings: ForeignMailings,
	id: string,
	how: MailingDelivery,
): Promise<MailingOutcome> {
	const progress = cx.progress('sending', how.total);
	const stall = new Stall(how.stallMs);
	try {
		const delivered = await mailings.deliver(id, {
			concurrency: how.connections ?? defaultConnections,
			rate: how.rate ?? null,
			unknown: how.retriesUnknown === true ? 'retry' : 'leave',
			signal: AbortSignal.any([how.signal, stall.signal]),
			onProgress: (counts) => {
				stall.moved();
				progress.update(
					counts.accepted + counts.suppressed + counts.failed + counts.unknown,
					troublesOf(counts),
				);
			},
		});
		progress.stop();
		return await conclude(cx, delivered, { mailings, id, stall });
	} finally {
		stall.stop();
		progress.stop();
	}
}

/** Throws what ended it early; 13 goes before everything else, because it is about what must not be repeated. */
async function conclude(
	cx: CommandContext,
	{ counts, error }: ForeignDelivered,
	{ mailings, id, stall }: { mailings: ForeignMailings; id: string; stall: Stall },
): Promise<MailingOutcome> {
	const { key } = await mailings.status(id);
	const resume = `mailctl send resume ${shellWord(key)}`;
	if (counts.unknown > 0) {
		await cx.warn(`${say(counts.unknown)} may or may not have been sent: the service did not answer`);
		await cx.hint(`look at the report or ask one of them; ${resume} --retry-unknown sends to them again`);
	}
	const rest = { counts: outcomeOf(counts), warnings: [] };
	if (counts.failed > 0) await sayWhyFailed(cx, mailings, { id, job: key });
	if (error === null) {
		await cx.note(`the service took ${say(counts.accepted)}; it does not tell what became of them`);
		return { kind: 'settled', reason: null, ...rest };
	}
	await cx.note(`${say(counts.accepted)} sent, ${say(counts.waiting)} waiting`);
	const hint = `${resume} goes on`;
	const isStalled = stall.signal.aborted;
	const isPlain = counts.unknown === 0 && !isStalled;
	if (cx.signal.aborted) await cx.hint(hint);
	cx.signal.throwIfAborted();
	if (isPlain) throw withHint(error, hint);
	const message = isStalled ? 'no progress within --wait-timeout' : classify(error).message;
	if (counts.unknown === 0) throw new CliError('stalled', exits.outOfTime, message, { hint });
	throw new CliError('uncertain', exits.uncertain, message, { hint, cause: error });
}

/** The error as it is reported, and how to go on behind what else it hints at. */
function withHint(cause: unknown, goesOn: string): CliError {
	const { code, exit, message, details, retryable, hint } = classify(cause);
	return new CliError(code, exit, message, {
		hint: hint === null ? goesOn : `${hint}; ${goesOn}`,
		...(details !== null && { details }),
		retryable,
		cause,
	});
}

/** In the words for messages: whatever the service took is sent as far as can be seen from here. */
function outcomeOf({ accepted, suppressed, failed, unknown }: SeatCounts): MailingOutcome['counts'] {
	return { sent: accepted, deferred: 0, bounced: 0, failed, uncertain: unknown, canceled: suppressed };
}

function troublesOf({ failed, unknown }: Readonly<SeatCounts>): string {
	const parts = [failed > 0 ? `${failed} failed` : '', unknown > 0 ? `${unknown} unknown` : ''];
	return parts.filter((part) => part !== '').join(', ');
}

function say(count: number): string {
	return `${count.toLocaleString('en-US')} ${count === 1 ? 'message' : 'messages'}`;
}

/** Aborts after so long without `moved`. */
class Stall {
	readonly #controller = new AbortController();
	readonly #timer: NodeJS.Timeout;

	constructor(ms: number) {
		this.#timer = setTimeout(() => this.#controller.abort(new Error('no progress')), ms);
	}

	get signal(): AbortSignal {
		return this.#controller.signal;
	}

	moved(): void {
		this.#timer.refresh();
	}

	stop(): void {
		clearTimeout(this.#timer);
	}
}
