/** A deployment once it is reached: its kind, its answer to the token, its speed and its clock. */

import { type Clock, type Micros, microsPerMs, microsPerSecond } from '../../../api/datetime.js';
import { ApiError } from '../../../api/errors.js';
import { isRecord } from '../../../api/json.js';
import { causeOf } from '../../../api/pauses.js';
import type { SendingProgress } from '../../../api/records.js';
import type { WireExchange, WireResponse } from '../../../api/wire.js';
import { spanText } from '../../render/units.js';
import { type Check, type CheckEnvironment, ok, problem, skipped, type Verdict, warning } from '../model.js';
import { listsPath, movedBase } from '../origin.js';
import { firstError } from '../timeouts.js';
import { descriptionOf, isPage, isWebPage, jsonOf, short, textOf } from '../untrusted-json.js';
import { stepsOf } from './queue.js';

/** How a deployment is asked. */
export interface ServiceOptions {
	exchange: WireExchange;
	/** There is a token to be refused. */
	hasToken: boolean;
	clock: Clock;
	/** Gives a new token: `mailctl login …`. */
	login: string;
	/** The place of a wrong token, or the command that replaces it. */
	replace: string;
	/** What a mailctl server says of its sending; rejects where it does not answer that. */
	queue: (signal: AbortSignal) => Promise<SendingProgress>;
	baseUrl: string;
	/** The command that gives another base URL. */
	move: (baseUrl: string) => string;
	/** Whether TLS works where a request in the clear was cut off. */
	speaksTls: (signal: AbortSignal) => Promise<boolean>;
	/** The root of the host, if a mailctl server answers there; null: it is the base URL itself, or none does. */
	serverAtOrigin: (signal: AbortSignal) => Promise<string | null>;
}

type Place = Pick<ServiceOptions, 'baseUrl' | 'move'>;

/** The answer of a deployment, or the reason for its silence. */
type Heard =
	| { kind: 'answer'; response: WireResponse; at: Micros }
	| { kind: 'silence'; why: string; mayBeTls: boolean };

/** `service.…`; each path is requested once for all checks. */
export function serviceChecks(service: ServiceOptions, environment: CheckEnvironment): Check[] {
	const { isOffline, timeout } = environment;
	const ask = once(async (path: string, token: null | undefined): Promise<Heard> => {
		const request = { method: 'GET', path, ...(token === null && { token }), signal: timeout() };
		try {
			const response = await service.exchange(request);
			return { kind: 'answer', response, at: service.clock.now() };
		} catch (error) {
			const mayBeTls = error instanceof ApiError && error.misdirected === 'tls';
			return { kind: 'silence', why: whyOf(error, request.signal), mayBeTls };
		}
	});
	// Without the token, which this request does not need.
	const root = () => ask('/', null);
	const lists = () => ask(`${listsPath}?page_size=1`, undefined);
	const isOurs = async () => {
		const heard = await root();
		return heard.kind === 'answer' && descriptionOf(heard.response) !== null;
	};
	const isElsewhere = async () => {
		const heard = await lists();
		return heard.kind === 'answer' && heard.response.status === 404 && !(await isOurs());
	};
	const asked = (judge: () => Promise<Verdict>) => async () =>
		isOffline ? skipped('--offline asks no other machine') : judge();
	const answered = (
		hear: () => Promise<Heard>,
		judge: (heard: Extract<Heard, { kind: 'answer' }>) => Verdict | Promise<Verdict>,
	) =>
		asked(async () => {
			const heard = await hear();
			return heard.kind === 'answer' ? judge(heard) : skipped('the service does not answer');
		});
	const ofOurs = (judge: () => Promise<Verdict>) =>
		asked(async () => {
			if ((await root()).kind === 'silence') return skipped('the service does not answer');
			if (await isElsewhere()) return skipped(unserved);
			return (await isOurs()) ? judge() : skipped('it is not a mailctl server');
		});
	return [
		{
			name: 'service.answers',
			run: asked(async () => {
				if (await isElsewhere()) return judgeAbsence(await service.serverAtOrigin(timeout()), service);
				const heard = await lists();
				if (heard.kind === 'answer') return judgeAnswer(heard.response, service);
				if (heard.mayBeTls && (await service.speaksTls(timeout()))) return judgeTlsPort(service);
				return problem(heard.why, 'look at the base URL, and whether the service runs');
			}),
		},
		{
			name: 'service.kind',
			run: answered(root, async ({ response }) =>
				(await isElsewhere()) ? skipped(unserved) : judgeKind(response),
			),
		},
		{
			name: 'service.token',
			run: answered(lists, async ({ response }) =>
				judgeToken(response, { ...service, isOurs: await isOurs() }),
			),
		},
		{ name: 'service.pace', run: answered(lists, ({ response }) => judgePace(response.durationMs)) },
		{
			name: 'service.clock',
			run: answered(lists, ({ response, at }) => judgeDate(response.headers['date'], at)),
		},
		{
			name: 'service.ready',
			run: ofOurs(async () => {
				const ready = await ask('/readyz', null);
				return ready.kind === 'silence' ? problem(ready.why) : judgeReady(ready.response);
			}),
		},
		{
			name: 'service.queue',
			run: ofOurs(async () => judgeQueue(await service.queue(timeout()).catch(silent))),
		},
	];
}

function judgeTlsPort({ baseUrl, move }: Place): Verdict {
	const { host } = new URL(baseUrl);
	const secure = baseUrl.replace(/^http:/i, 'https:');
	return problem(
		`${host} speaks TLS, and the base URL is http://`,
		`the base URL is ${secure}:\n${move(secure)}`,
	);
}

function judgeRedirect(location: string | undefined, { baseUrl, move }: Place): Verdict {
	const moved = location === undefined ? null : movedBase(baseUrl, location);
	// Of a remote text no more than its beginning is shown, and half a URL is none.
	const isWhole = moved !== null && short(moved) === moved;
	return problem(
		`it redirects to ${short(location ?? 'another place')}`,
		isWhole ? `the base URL is ${moved}:\n${move(moved)}` : 'look at the base URL',
	);
}

function judgeAnswer(response: WireResponse, place: Place): Verdict {
	const { status, headers } = response;
	if (status >= 500)
		return problem(
			`it answers ${status}: the service itself has failed`,
			'try again later, or look into its log',
		);
	if (status >= 300 && status < 400) return judgeRedirect(headers['location'], place);
	if (status === 404) return judgeAbsence(null, place);
	if (status === 429) return warning('it answers 429: it is asked too often just now', 'try again later');
	// A refusal shows that the server knows tokens.
	if (status === 401 || status === 403) return ok(`it answers ${status}`);
	if (status >= 400)
		return problem(`it answers ${status} to a call that every such service takes`, 'look at the base URL');
	if (!isPage(response))
		return problem(
			`it is not this service: ${listsPath} answers ${status} with ${isWebPage(response) ? 'a web page' : 'something else than lists'}`,
			'look at the base URL',
		);
	return ok(`it answers ${status}`);
}

/** `origin`: where a mailctl server answers in its place. */
function judgeAbsence(origin: string | null, { move }: Place): Verdict {
	return problem(
		`it has no ${listsPath}: this is not the service, or its base URL has a path`,
		origin === null
			? 'look at the base URL'
			: `${origin} answers as a mailctl server: the base URL is that:\n${move(origin)}`,
	);
}

function judgeKind(response: WireResponse): Verdict {
	const found = descriptionOf(response);
	if (found === null) return ok('not a mailctl server: what is ours beyond the API is not there');
	return ok(`mailctl ${found.version} with ${found.extensions.join(', ') || 'no extensions'}`);
}

/** Judges the token by a call that needs one. A 403 of mailctl means a token without `read`; of others any refusal. */
function judgeToken(
	response: WireResponse,
	{
		hasToken,
		isOurs,
		login,
		replace,
	}: Pick<ServiceOptions, 'hasToken' | 'login' | 'replace'> & { isOurs: boolean },
): Verdict {
	const { status } = response;
	if (!hasToken && (status === 401 || status === 403))
		return problem(`it wants a token, and there is none (${status})`, login);
	if (status === 403 && isOurs) return warning('the token is accepted, and may not read lists (403)');
	if (status === 401 || status === 403) return problem(`the token is refused (${status})`, replace);
	if (status >= 300 || !isPage(response)) return skipped(unserved);
	return ok(hasToken ? 'the token is accepted' : 'it wants no token');
}

/** Of one small call, in milliseconds. */
export function judgePace(durationMs: number): Verdict {
	const says = `one small call took ${Math.round(durationMs)} ms`;
	return durationMs > 2_000 ? warning(`${says}: everything will be slow`) : ok(says);
}

const unserved = 'the service does not answer as it should';

const slack: Micros = 300 * microsPerSecond;

/** By the header Date; certificates, links that expire and idempotency keys go by the clock. */
function judgeDate(date: string | undefined, now: Micros): Verdict {
	const there = date === undefined ? Number.NaN : Date.parse(date) * microsPerMs;
	if (Number.isNaN(there)) return skipped('it does not say what time it is');
	const ahead = there - now;
	if (Math.abs(ahead) <= slack) return ok('its clock and the one of this machine agree');
	return warning(
		`its clock is ${spanText(ahead)} ${ahead > 0 ? 'ahead of' : 'behind'} the one of this machine`,
		'set the clock that is wrong: timedatectl set-ntp true',
	);
}

function judgeReady({ status, body }: WireResponse): Verdict {
	if (status === 200) return ok('its database answers');
	const json = jsonOf(body);
	const detail = isRecord(json) ? textOf(json['detail']) : null;
	return problem(
		`it is not ready (${status}): ${detail ?? 'it does not say why'}`,
		'mailctl doctor on the machine of the server says more',
	);
}

/** Undefined: the server does not answer that. */
function judgeQueue(queue: SendingProgress | undefined): Verdict {
	if (queue === undefined) return skipped('it does not tell how its queue is');
	const { paused, has_worker } = queue;
	if (paused === null && has_worker === false)
		return warning(
			'no process sends at the moment: what it accepts waits',
			[there, 'mailctl worker'].join('\n'),
		);
	if (paused === null) return ok('nothing holds its queue up');
	const said = textOf(paused) ?? 'it does not say why';
	const steps = stepsOf(causeOf(said), (...words) => ['mailctl', ...words].join(' '));
	return problem(`its queue stands still: ${said}`, [there, ...steps].join('\n'));
}

/** A server keeps these commands to the machine that owns its database. */
const there = 'on the machine of the server, with its --db or --profile:';

function silent(): undefined {
	return undefined;
}

function whyOf(error: unknown, signal: AbortSignal): string {
	if (signal.aborted) return firstError(signal.reason);
	return error instanceof ApiError ? error.message : firstError(error);
}

/** Requests each path once for all checks. */
function once(ask: (path: string, token: null | undefined) => Promise<Heard>) {
	const known = new Map<string, Promise<Heard>>();
	return (path: string, token: null | undefined): Promise<Heard> => {
		const asked = known.get(path) ?? ask(path, token);
		known.set(path, asked);
		return asked;
	};
}
