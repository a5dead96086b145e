/**
 * Sends messages by calls to the API of a service. A call cannot be undone, so the store records each call before it
 * starts, and its outcome without delay.
 */

import { type EmailKey, emailKey } from '../../api/address.js';
import {
	ApiError,
	type FieldErrors,
	listFieldErrors,
	mayHaveHappened,
	nonFieldErrors,
} from '../../api/errors.js';
import type { SendRequest } from '../../api/inputs.js';
import type { SendResult, Uuid } from '../../api/records.js';
import type { DeliveryOutcome, Reply } from '../../engine/rules/outcomes.js';
import type { StoredCall } from '../../store/campaigns.js';
import type { Queue, Reads } from '../../store/operations.js';
import type { Leased } from '../../store/queue.js';
import { createSubmissions } from '../composer.js';
import type { Courier, Telling } from '../courier.js';
import { cleanText } from '../reply.js';

interface ApiCourierOptions {
	reads: Pick<Reads, 'getSubmission'>;
	queue: Pick<Queue, 'setCalling'>;
	send: (request: SendRequest) => Promise<SendResult>;
	connections: number;
	rate?: number;
	signal: AbortSignal;
}

/** Assumption: another service accepts as many addresses per call as mailctl (api-decisions 21). */
const maxGroup = 1_000;
const maxUncertainInARow = 16;

export class ApiCourier implements Courier {
	error: unknown = null;
	readonly window: Courier['window'];
	readonly mostTogether: number;
	readonly mostUnderWay: number;
	readonly leaseBatch = maxGroup;
	readonly settles = 'at_once';
	readonly #options: ApiCourierOptions;
	readonly #submissions: ReturnType<typeof createSubmissions>;
	#calls = 0;
	#isHalted = false;
	#uncertainInARow = 0;

	constructor(options: ApiCourierOptions) {
		const { connections, rate, reads } = options;
		this.#options = options;
		this.#submissions = createSubmissions(reads);
		this.window = createWindow(connections);
		this.mostTogether = rate === undefined ? maxGroup : Math.min(maxGroup, Math.max(1, Math.floor(rate)));
		this.mostUnderWay = connections * this.mostTogether;
	}

	expect(): void {}

	async deliver(group: readonly Leased[], tell: Telling): Promise<void> {
		const submission = await this.#submissions.get(group[0]?.submission ?? '');
		if (submission?.call === undefined) throw new Error('a message of no send call');
		const { call } = submission;
		const parts = [group];
		for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
			if (this.#isHalted || this.error !== null) {
				for (const message of part) tell.settled(message, { kind: 'released', why: 'drain' });
				continue;
			}
			// With `gathers`, the store waits briefly, so that writes of other calls share the commit.
			await this.#options.queue.setCalling({ fences: part, isCalling: true, gathers: this.#calls > 0 });
			const { outcomes, again, stop } = await this.#call(part, call);
			// Stop before storing outcomes, so that no other group starts.
			if (stop !== null) this.#stop(stop, tell);
			for (const { message, outcome } of outcomes) tell.settled(message, outcome);
			if (again.length > 0) await this.#options.queue.setCalling({ fences: again.flat(), isCalling: false });
			parts.unshift(...again);
			if (this.#countUncertain(outcomes)) this.#stop(gone(), tell);
			if (stop === null) tell.worked(true);
		}
	}

	halt(): void {
		this.#isHalted = true;
	}

	/** The run waits for calls in flight, because aborting a request does not undo the call. */
	abort(): void {}

	async #call(group: readonly Leased[], call: StoredCall): Promise<Settled> {
		this.#calls += 1;
		try {
			const answer = await this.#options.send(requestOf(group, call));
			return settleAnswer(group, answer);
		} catch (error) {
			if (error instanceof ApiError) return settleError(group, call.content, error);
			const { signal } = this.#options;
			// The signal stops `send` only between attempts, and `send` repeats only refused calls. So no mail was sent.
			const isStopped = signal.aborted && error === signal.reason;
			if (!isStopped) this.error ??= error;
			const reply = { phase: 'call', code: null, enhanced: 'internal', text: String(error) } as const;
			const outcome = isStopped
				? ({ kind: 'released', why: 'drain' } as const)
				: ({ kind: 'uncertain', reply } as const);
			return { outcomes: group.map((message) => ({ message, outcome })), again: [], stop: null };
		} finally {
			this.#calls -= 1;
		}
	}

	#stop(error: ApiError, tell: Telling): void {
		this.error ??= error;
		tell.failed(error.message);
	}

	#countUncertain(outcomes: Settled['outcomes']): boolean {
		const isUncertain = outcomes.some(({ outcome }) => outcome.kind === 'uncertain');
		this.#uncertainInARow = isUncertain ? this.#uncertainInARow + 1 : 0;
		return this.#uncertainInARow > maxUncertainInARow;
	}
}

function createWindow(connections: number): Courier['window'] {
	let inFlight = 0;
	return {
		get inFlight() {
			return inFlight;
		},
		isFree: () => inFlight < connections,
		enter: () => {
			inFlight += 1;
			return {
				hold: () => undefined,
				leave: () => {
					inFlight -= 1;
				},
			};
		},
	};
}

function requestOf(group: readonly Leased[], { request, content }: StoredCall): SendRequest {
	const to = group.map((message) => message.to);
	const context = content === 'own' ? {} : (group[0]?.variables ?? {});
	return { ...request, to, ...(Object.keys(context).length > 0 && { context }) };
}

function gone(): ApiError {
	return new ApiError('network', 'The service has stopped answering.', { unanswered: true });
}

interface CallOutcome {
	message: Leased;
	outcome: DeliveryOutcome;
}

/**
 * `again`: groups to send again, each in its own call, because the service refused the whole call. `stop`: the error
 * that ends the run, because the service would refuse every further call.
 */
export interface Settled {
	outcomes: readonly CallOutcome[];
	again: readonly (readonly Leased[])[];
	stop: ApiError | null;
}

function settleAnswer(group: readonly Leased[], answer: SendResult): Settled {
	const { messages, result, messages_created } = answer;
	if (!result && messages.length === 0 && messages_created === 0)
		return settled(failed(group, { code: 'refused', error: 'The service created no message.' }));
	const made = new Map<EmailKey, Uuid>(messages.map(({ to, id }) => [emailKey(to), id]));
	// Assumption: the service omitted nobody if it counts as many messages as the request has recipients.
	const isWhole = messages_created >= group.length;
	const [only] = group.length === 1 ? messages : [];
	return settled(
		group.map((message): CallOutcome => {
			const id = isWhole && group.length === 1 ? only?.id : made.get(emailKey(message.to));
			if (id === undefined && !isWhole)
				return { message, outcome: { kind: 'suppressed', reply: replyOf(null, '') } };
			return { message, outcome: { kind: 'sent', reply: replyOf(null, id ?? '') } };
		}),
	);
}

export function settleError(
	group: readonly Leased[],
	content: StoredCall['content'],
	error: ApiError,
): Settled {
	if (mayHaveHappened(error)) {
		const reply = replyOf(error.code, error.message, error);
		return settled(group.map((message) => ({ message, outcome: { kind: 'uncertain', reply } })));
	}
	if (!isRefusal(error)) return stopped(group, error);
	if (!concernsContent(error)) return refused(group, error);
	// `own`: each request has its own content, so the other requests may be valid.
	if (content === 'own') return settled(failed(group, complaintOf(error), error));
	return stopped(group, error);
}

function refused(group: readonly Leased[], error: ApiError): Settled {
	if (group.length <= 1) return settled(failed(group, complaintOf(error), error));
	const named = namedIn(error.fields ?? {}, group);
	if (named.size === 0) {
		const middle = Math.ceil(group.length / 2);
		return { outcomes: [], again: [group.slice(0, middle), group.slice(middle)], stop: null };
	}
	const rest = group.filter((message) => !named.has(message));
	const outcomes = [...named].flatMap(([message, complaint]) => failed([message], complaint, error));
	return { outcomes, again: rest.length === 0 ? [] : [rest], stop: null };
}

function namedIn({ to }: FieldErrors, group: readonly Leased[]): Map<Leased, Complaint> {
	const told = new Map<Leased, Complaint>();
	if (to === undefined) return told;
	for (const { path, code, message } of listFieldErrors({ to })) {
		const index = /^to\.(\d+)/.exec(path)?.[1];
		const one = index === undefined ? undefined : group[Number(index)];
		if (one !== undefined) told.set(one, { code, error: message });
	}
	return told;
}

/** Assumption: another service may also refuse a recipient with 409, 413 or 422. 402 concerns the account. */
function isRefusal({ code, http }: ApiError): boolean {
	if (http?.status === 402) return false;
	return ['invalid', 'parse_error', 'conflict', 'unprocessable', 'too_large'].includes(code);
}

const ofOne: ReadonlySet<string> = new Set(['to', 'context', nonFieldErrors]);

function concernsContent({ fields }: ApiError): boolean {
	if (fields === null) return false;
	const names = Object.keys(fields);
	return names.length > 0 && names.every((name) => !ofOne.has(name));
}

interface Complaint {
	code: string;
	error: string;
}

function complaintOf(error: ApiError): Complaint {
	const complaints = error.fields === null ? [] : listFieldErrors(error.fields);
	const text = complaints.map(({ path, message }) => `${path}: ${message}`).join(' ') || error.message;
	return { code: complaints[0]?.code ?? error.code, error: text };
}

function settled(outcomes: readonly CallOutcome[]): Settled {
	return { outcomes, again: [], stop: null };
}

function stopped(group: readonly Leased[], stop: ApiError): Settled {
	const outcome = { kind: 'released', why: 'infrastructure' } as const;
	return { outcomes: group.map((message) => ({ message, outcome })), again: [], stop };
}

function failed(group: readonly Leased[], { code, error }: Complaint, answer?: ApiError): CallOutcome[] {
	const reply = replyOf(code, error, answer);
	return group.map((message) => ({ message, outcome: { kind: 'failed', reply } }));
}

function replyOf(code: string | null, text: string, answer?: ApiError): Reply {
	return { phase: 'call', code: answer?.http?.status ?? null, enhanced: code, text: cleanText(text) };
}
