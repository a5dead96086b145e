/**
 * What an answer to a send call, or the lack of one, says about each of its recipients. Pure.
 *
 * | what came | then |
 * |---|---|
 * | 2xx | accepted; without a message of its own: suppressed |
 * | 2xx that is not the contract's, a cut, a timeout, 5xx | unknown: it may have been sent |
 * | 400, 409, 413, 422 about recipients or their variables | failed; of several, each is asked about |
 * | the same about anything else | nothing was sent, and nothing else would be: the run ends; of a request of its own: failed |
 * | 401, 402, 403, 404, 405, 415, a redirect, 501, 505, no connection | as above; a request of its own too |
 * | 429, 503 with Retry-After | not processed: was tried again before it came here; the run ends |
 */
import { type EmailKey, emailKey } from '../../../api/address.js';
import { type ApiError, type FieldErrors, listFieldErrors, nonFieldErrors } from '../../../api/errors.js';
import type { SendResult, Uuid } from '../../../api/records.js';
import type { Group, Seated } from './calls.js';
import type { OutcomeEntry } from './entries.js';

export interface Settled {
	outcomes: readonly OutcomeEntry[];
	/** Of a refused group: those who may still be sent to, in calls of their own. They are `waiting` by then. */
	again: readonly Group[];
	/** What concerns everybody who is still to come; null = go on. */
	stop: ApiError | null;
}

/** The service did answer as the contract has it. */
export function settleAnswer(group: Group, answer: SendResult): Settled {
	const { people } = group;
	const { messages, result, messages_created } = answer;
	if (!result && messages.length === 0 && messages_created === 0)
		return settled(failed(people, { code: 'refused', error: 'The service says that it made no message.' }));
	const made = new Map<EmailKey, Uuid>(messages.map(({ to, id }) => [emailKey(to), id]));
	const ids = people.map(({ to }) => made.get(emailKey(to)) ?? null);
	const isWhole = messages_created >= people.length;
	// Assumption: who counts as many messages as were asked for has left nobody out, however it writes addresses.
	if (isWhole) return settled(accepted(people, people.length === 1 ? [messages[0]?.id ?? null] : ids));
	const taken = people.filter((_, index) => ids[index] !== null);
	const left = people.filter((_, index) => ids[index] === null);
	return settled(
		accepted(
			taken,
			ids.filter((id) => id !== null),
		),
		{
			kind: 'outcome',
			as: 'suppressed',
			seats: seatsOf(left),
		},
	);
}

/** The call failed: was refused, not answered, or not made. */
export function settleError(group: Group, error: ApiError): Settled {
	const { people } = group;
	if (mayHaveHappened(error)) {
		const { code, message } = error;
		const outcome = { kind: 'outcome', as: 'unknown', code, error: short(message) } as const;
		return settled({ ...outcome, seats: seatsOf(people) });
	}
	if (!isRefusal(error)) return { ...settled(waiting(people)), stop: error };
	if (!concernsContent(error)) return refused(group, error);
	// Other requests say something else: one that will never be taken must not hold them up for ever.
	if (group.content === 'own') return settled(failed(people, complaintOf(error)));
	return { ...settled(waiting(people)), stop: error };
}

function refused(group: Group, error: ApiError): Settled {
	const { people } = group;
	const [first] = people;
	if (people.length === 1 || first === undefined) return settled(failed(people, complaintOf(error)));
	const named = namedIn(error.fields ?? {}, people);
	if (named.length === 0) {
		// Whom it is about is not said: halves tell.
		const middle = Math.ceil(people.length / 2);
		const again = [people.slice(0, middle), people.slice(middle)].map((half) => ({ ...group, people: half }));
		return { outcomes: [waiting(people)], again, stop: null };
	}
	const bad = new Set(named.map(({ seat }) => seat));
	const rest = people.filter(({ seat }) => !bad.has(seat));
	const outcomes = named.map(({ seat, code, error: text }) =>
		failed(
			people.filter((one) => one.seat === seat),
			{ code, error: text },
		),
	);
	const again = rest.length === 0 ? [] : [{ ...group, people: rest }];
	return { outcomes: [...outcomes, waiting(rest)], again, stop: null };
}

/** Those that `{"to": {"1": ["…"]}}` speaks of. */
function namedIn(
	{ to }: FieldErrors,
	people: readonly Seated[],
): { seat: number; code: string; error: string }[] {
	if (to === undefined) return [];
	const told = new Map<number, { code: string; error: string }>();
	for (const { path, code, message } of listFieldErrors({ to })) {
		const index = /^to\.(\d+)/.exec(path)?.[1];
		const seat = index === undefined ? undefined : people[Number(index)]?.seat;
		if (seat !== undefined) told.set(seat, { code, error: short(message) });
	}
	return [...told].map(([seat, complaint]) => ({ seat, ...complaint }));
}

/** An answer of 501 or 505 is said for good; 503 with Retry-After and 429 say that nothing was done. */
function mayHaveHappened({ code, unanswered, http, retryAfterMs }: ApiError): boolean {
	if (unanswered) return true;
	if (http === null) return code === 'bad_answer';
	if (http.status >= 500)
		return http.status !== 501 && http.status !== 505 && !(http.status === 503 && retryAfterMs !== null);
	// What cannot be read of a 2xx came after the work was done.
	return http.status < 300;
}

/** Assumption: elsewhere a refused recipient may also be 409, 413 or 422; 402 (RFC 9110 s.15.5.3) is about the account. */
function isRefusal({ code, http }: ApiError): boolean {
	if (http?.status === 402) return false;
	return ['invalid', 'parse_error', 'conflict', 'unprocessable', 'too_large'].includes(code);
}

const ofOne: ReadonlySet<string> = new Set(['to', 'context', nonFieldErrors]);

/** Complaints about the sender, the content, the template: nobody it is said to would be sent to. */
function concernsContent({ fields }: ApiError): boolean {
	if (fields === null) return false;
	const names = Object.keys(fields);
	return names.length > 0 && names.every((name) => !ofOne.has(name));
}

const maxErrorLength = 500;

function complaintOf(error: ApiError): { code: string; error: string } {
	const complaints = error.fields === null ? [] : listFieldErrors(error.fields);
	const text = complaints.map(({ path, message }) => `${path}: ${message}`).join(' ') || error.message;
	return { code: complaints[0]?.code ?? error.code, error: short(text) };
}

function short(text: string): string {
	return text.slice(0, maxErrorLength);
}

function settled(...outcomes: readonly OutcomeEntry[]): Settled {
	return { outcomes: outcomes.filter(({ seats }) => seats.length > 0), again: [], stop: null };
}

function accepted(people: readonly Seated[], ids: readonly (Uuid | null)[]): OutcomeEntry {
	return { kind: 'outcome', as: 'accepted', seats: seatsOf(people), ids };
}

function failed(people: readonly Seated[], complaint: { code: string; error: string }): OutcomeEntry {
	return { kind: 'outcome', as: 'failed', seats: seatsOf(people), ...complaint };
}

function waiting(people: readonly Seated[]): OutcomeEntry {
	return { kind: 'outcome', as: 'waiting', seats: seatsOf(people) };
}

function seatsOf(people: readonly Seated[]): number[] {
	return people.map(({ seat }) => seat);
}
