/** The checks of a deployment, from the outside: the way there, its kind, its answer to the token, and its queue. */
import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import type { WireResponse } from '../../api/api.js';
import { need } from '../../api/capabilities.js';
import { type Micros, microsPerMs, microsPerSecond } from '../../api/datetime.js';
import { isRecord } from '../../api/json.js';
import { causeOf } from '../../api/pauses.js';
import type { SendingProgress } from '../../api/records.js';
import { isLoopback } from '../../api/schema/url.js';
import { tokenOrigin } from '../config/settings.js';
import { refusedTokenHint } from '../config/token.js';
import { hintText, mailctl, unnamed } from '../frame/command-line.js';
import type { Connection, Target } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { spanText } from '../render/units.js';
import { judgeValidity, lookAtCertificate } from './certificate.js';
import {
	type Check,
	firstError,
	ok,
	once,
	online,
	problem,
	type Surroundings,
	skipped,
	type Verdict,
	warning,
} from './checks.js';
import { configChecks } from './config.js';
import {
	descriptionOf,
	jsonOf,
	listsPath,
	movedBase,
	moveTo,
	serverAtOrigin,
	short,
	textOf,
} from './origin.js';
import { stepsOf } from './queue.js';

/** `close` when the checks are done. */
export async function remoteChecks(
	cx: CommandContext,
	asked: Extract<Target, { kind: 'remote' }>,
	around: Surroundings,
): Promise<{ checks: Check[]; close(): Promise<void> }> {
	const { connection, token, close } = await connectAnyhow(cx, asked);
	const { goesThroughProxy } = await import('../connect/remote.js');
	const baseUrl = new URL(asked.baseUrl);
	const proxy = cx.globals.proxy ?? null;
	return {
		checks: [
			...configChecks(cx.paths, []),
			{ name: 'config.token', run: () => token },
			...connectionChecks(
				{
					baseUrl,
					ca: await cx.authority(),
					isInsecure: cx.globals.insecure === true,
					isProxied: goesThroughProxy({ baseUrl, proxy, env: cx.io.env }),
				},
				around,
			),
			...serviceChecks(cx, connection, around),
		],
		close,
	};
}

/** Without a token where it cannot be read, or belongs to another deployment: other checks still work. */
async function connectAnyhow(
	cx: CommandContext,
	asked: Extract<Target, { kind: 'remote' }>,
): Promise<{ connection: Connection; token: Verdict; close(): Promise<void> }> {
	try {
		const connection = await cx.connection();
		return {
			connection,
			token: ok(hasToken(connection) ? 'a token goes along' : 'no token is given'),
			close: async () => {},
		};
	} catch (error) {
		if (!(error instanceof CliError)) throw error;
		const connection = await cx.connectTo({ ...asked, token: null });
		const fix = error.hint === null ? null : hintText(error.hint, unnamed);
		return { connection, token: problem(error.message, fix), close: () => connection.close() };
	}
}

function hasToken({ target }: Connection): boolean {
	return target.kind === 'remote' && target.token !== null;
}

interface Way {
	baseUrl: URL;
	/** PEM of `--ca-cert`; null: none. */
	ca: string | null;
	isInsecure: boolean;
	/** A proxy is in between: the deployment is not reached from here. */
	isProxied: boolean;
}

/** Each step runs once, and none after a failed one: a cause is reported once. */
function connectionChecks(way: Way, around: Surroundings): Check[] {
	const { baseUrl, isProxied } = way;
	const direct = (judge: () => Promise<Verdict>) =>
		online(around, () => (isProxied ? skipped('a proxy is in between') : judge()));
	const host = baseUrl.hostname.replace(/^\[|\]$/g, '');
	const isSecure = baseUrl.protocol === 'https:';
	const server = { host, port: Number(baseUrl.port || (isSecure ? 443 : 80)) };
	const found = once(() => lookUp(host));
	const reached = once(async () =>
		(await found()).level === 'ok' ? knock(server, around.timeout()) : skipped('there is no such name'),
	);
	const certificate: Check = {
		name: 'connection.certificate',
		run: direct(async () =>
			(await reached()).level === 'ok'
				? judgeHandshake(server, way, around)
				: skipped('there is no connection'),
		),
	};
	return [
		{ name: 'connection.url', run: () => judgeUrl(way) },
		{ name: 'connection.name', run: direct(found) },
		{ name: 'connection.port', run: direct(reached) },
		...(isSecure ? [certificate] : []),
	];
}

/** On plain http every machine on the way can read the token. */
function judgeUrl({ baseUrl, isInsecure }: Way): Verdict {
	if (isInsecure && baseUrl.protocol === 'https:')
		return warning(
			'--insecure: any machine on the way may answer in its place, and take the token',
			'leave --insecure out; --ca-cert FILE names an authority of your own',
		);
	if (baseUrl.protocol === 'https:') return ok(`${baseUrl.origin} goes over TLS`);
	if (isLoopback(baseUrl.hostname)) return ok(`${baseUrl.origin} does not leave this machine`);
	const { host } = baseUrl;
	return warning(`plain http to ${host}: the token and all data go in the clear`, `use https://${host}`);
}

async function lookUp(host: string): Promise<Verdict> {
	if (isIP(host) !== 0) return ok(`${host} is an address itself`);
	try {
		const found = await lookup(host, { all: true });
		return ok(`${host} is ${found.map(({ address }) => address).join(', ')}`);
	} catch (error) {
		const code = error instanceof Error && 'code' in error ? String(error.code) : '';
		const why = code === 'ENOTFOUND' ? 'there is no such name' : `its name cannot be looked up (${code})`;
		return problem(`${host}: ${why}`, 'look at the spelling of the base URL, and at the DNS of this machine');
	}
}

function knock({ host, port }: { host: string; port: number }, signal: AbortSignal): Promise<Verdict> {
	return new Promise((resolve) => {
		const socket = connect({ host, port, signal });
		const end = (verdict: Verdict) => {
			socket.destroy();
			resolve(verdict);
		};
		socket.once('connect', () => end(ok(`${host}:${port} takes connections`)));
		socket.once('error', (error) => {
			const why = firstError(signal.aborted ? signal.reason : error);
			end(problem(`${host}:${port}: ${why}`, 'look whether the service runs, and at firewalls on the way'));
		});
	});
}

async function judgeHandshake(
	server: { host: string; port: number },
	{ ca, isInsecure }: Way,
	{ clock, timeout }: Surroundings,
): Promise<Verdict> {
	const renew = 'renew it on the server';
	try {
		const seen = await lookAtCertificate({ ...server, ca, signal: timeout() });
		const { name, validTo, distrust } = seen;
		if (distrust === null || validTo < clock.now())
			return judgeValidity(seen, { now: clock.now(), isChecked: !isInsecure, renew });
		const says = `the certificate of ${name} is not trusted here: ${distrust.says}`;
		const fixes = {
			authority: '--ca-cert FILE names an authority of your own',
			name: 'give a base URL with a name that it is for',
			other: renew,
		};
		return isInsecure ? ok(`${says}; it is not asked for`) : problem(says, fixes[distrust.because]);
	} catch (error) {
		const why = firstError(error);
		return problem(`no TLS with ${server.host}:${server.port}: ${why}`, 'look at the scheme of the base URL');
	}
}

/** The answer of a deployment, or the reason for its silence. */
type Heard = { kind: 'answer'; response: WireResponse; at: Micros } | { kind: 'silence'; why: string };

const unserved = 'the service does not answer as it should';

/** Each path is requested once for all checks. */
function serviceChecks(cx: CommandContext, connection: Connection, around: Surroundings): Check[] {
	const { api, exchange, target } = connection;
	const { clock, timeout } = around;
	const baseUrl = target.kind === 'remote' ? target.baseUrl : '';
	const move = (to: string) => hintText(moveTo(cx, baseUrl, to), unnamed);
	const ask = (path: string, token: null | undefined) =>
		once(async (): Promise<Heard> => {
			const signal = timeout();
			try {
				const response = await exchange({ method: 'GET', path, ...(token === null && { token }), signal });
				return { kind: 'answer', response, at: clock.now() };
			} catch (error) {
				return { kind: 'silence', why: firstError(signal.aborted ? signal.reason : error) };
			}
		});
	// Without the token, which this request does not need.
	const root = ask('/', null);
	const lists = ask(`${listsPath}?page_size=1`, undefined);
	const ready = ask('/readyz', null);
	const isOurs = async () => {
		const heard = await root();
		return heard.kind === 'answer' && descriptionOf(heard.response) !== null;
	};
	const isElsewhere = async () => {
		const heard = await lists();
		return heard.kind === 'answer' && heard.response.status === 404 && !(await isOurs());
	};
	type Judge = (heard: Extract<Heard, { kind: 'answer' }>) => Verdict | Promise<Verdict>;
	const answered = (hear: () => Promise<Heard>, judge: Judge) =>
		online(around, async () => {
			const heard = await hear();
			return heard.kind === 'answer' ? judge(heard) : skipped('the service does not answer');
		});
	const ofOurs = (judge: () => Promise<Verdict>) =>
		answered(root, async () => {
			if (await isElsewhere()) return skipped(unserved);
			return (await isOurs()) ? judge() : skipped('it is not a mailctl server');
		});
	return [
		{
			name: 'service.answers',
			run: online(around, async () => {
				const heard = await lists();
				if (heard.kind === 'answer') {
					const origin = (await isElsewhere()) ? await serverAtOrigin(cx, baseUrl, timeout()) : null;
					return judgeAnswer(heard.response, { baseUrl, origin, move });
				}
				if (!baseUrl.startsWith('http:') || !(await speaksTls(new URL(baseUrl), timeout())))
					return problem(heard.why, 'look at the base URL, and whether the service runs');
				const says = `${new URL(baseUrl).host} speaks TLS, and the base URL is http://`;
				return problem(says, rightBase(baseUrl.replace(/^http:/i, 'https:'), move));
			}),
		},
		{
			name: 'service.kind',
			run: answered(root, async ({ response }) => {
				if (await isElsewhere()) return skipped(unserved);
				const found = descriptionOf(response);
				return found === null
					? ok('not a mailctl server: what is ours beyond the API is not there')
					: ok(`mailctl ${found.version} with ${found.extensions.join(', ') || 'no extensions'}`);
			}),
		},
		{
			name: 'service.token',
			run: answered(lists, async ({ response }) =>
				judgeToken(response, {
					isOurs: await isOurs(),
					hasToken: hasToken(connection),
					login: loginLine(cx, baseUrl),
					isGiven: isGiven(cx),
					replace: hintText(refusedTokenHint(cx.settings, cx.globals, cx.io.env), unnamed),
				}),
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
				const heard = await ready();
				return heard.kind === 'answer' ? judgeReady(heard.response) : problem(heard.why);
			}),
		},
		{
			name: 'service.queue',
			run: ofOurs(async () => {
				// Every scope may ask for the progress of a submission, even of one that does not exist.
				const submission = '00000000-0000-4000-8000-000000000000';
				const asked = async () =>
					(await need(api, 'messages')).progress({ submission }, { signal: timeout() });
				return judgeQueue(await asked().catch(() => null));
			}),
		},
	];
}

async function speaksTls({ hostname, port }: URL, signal: AbortSignal): Promise<boolean> {
	const host = hostname.replace(/^\[|\]$/g, '');
	return lookAtCertificate({ host, port: Number(port || 80), ca: null, signal }).then(
		() => true,
		() => false,
	);
}

function rightBase(baseUrl: string, move: (to: string) => string): string {
	return `the base URL is ${baseUrl}:\n${move(baseUrl)}`;
}

/** `origin`: where a mailctl server answers in its place. */
function judgeAnswer(
	{ status, headers, body }: WireResponse,
	{ baseUrl, origin, move }: { baseUrl: string; origin: string | null; move: (to: string) => string },
): Verdict {
	const elsewhere = 'look at the base URL';
	if (status >= 500)
		return problem(
			`it answers ${status}: the service itself has failed`,
			'try again later, or look into its log',
		);
	if (status === 404)
		return problem(
			`it has no ${listsPath}: this is not the service, or its base URL has a path`,
			origin === null
				? elsewhere
				: `${origin} answers as a mailctl server: the base URL is that:\n${move(origin)}`,
		);
	if (status === 429) return warning('it answers 429: it is asked too often just now', 'try again later');
	// A refusal shows that the server knows tokens.
	if (status === 401 || status === 403) return ok(`it answers ${status}`);
	if (status >= 400)
		return problem(`it answers ${status} to a call that every such service takes`, elsewhere);
	if (status >= 300) {
		const location = headers['location'] ?? 'another place';
		const moved = movedBase(baseUrl, location);
		// Only the beginning of a remote text is shown, and half a URL is useless.
		const isWhole = moved !== null && short(moved) === moved;
		return problem(`it redirects to ${short(location)}`, isWhole ? rightBase(moved, move) : elsewhere);
	}
	if (isPage(body)) return ok(`it answers ${status}`);
	const isWebPage = /^\s*</.test(new TextDecoder().decode(body.subarray(0, 1_000)));
	return problem(
		`it is not this service: ${listsPath} answers ${status} with ${isWebPage ? 'a web page' : 'something else than lists'}`,
		elsewhere,
	);
}

/** The document's list envelope, as far as a stranger's answer would not have it too. */
function isPage(body: Uint8Array): boolean {
	const json = jsonOf(body);
	return isRecord(json) && typeof json['count'] === 'number' && Array.isArray(json['results']);
}

/** By a call that needs a token. A 403 of mailctl means a token without `read`; of others any refusal. */
function judgeToken(
	{ status, body }: WireResponse,
	of: { isOurs: boolean; hasToken: boolean; login: string; isGiven: boolean; replace: string },
): Verdict {
	if (status === 401 || status === 403) {
		if (!of.hasToken) return problem(`it wants a token, and there is none (${status})`, of.login);
		if (status === 403 && of.isOurs) return warning('the token is accepted, and may not read lists (403)');
		return problem(`the token is refused (${status})`, of.isGiven ? of.replace : of.login);
	}
	if (status >= 300 || !isPage(body)) return skipped(unserved);
	return ok(of.hasToken ? 'the token is accepted' : 'it wants no token');
}

/** The token is this call's own, not one that is stored. */
function isGiven({ settings, globals, io, paths }: CommandContext): boolean {
	const { level } = tokenOrigin(settings, globals, io.env, paths);
	return level === 'flag' || level === 'environment';
}

function loginLine({ settings }: CommandContext, baseUrl: string): string {
	const { profile } = settings.target;
	const named = profile === null ? [] : ['--profile', profile];
	return hintText(mailctl('login', ...named, '--base-url', baseUrl), unnamed);
}

/** Of one small call, in milliseconds. */
export function judgePace(durationMs: number): Verdict {
	const says = `one small call took ${Math.round(durationMs)} ms`;
	return durationMs > 2_000 ? warning(`${says}: everything will be slow`) : ok(says);
}

/** Certificates, links that expire and idempotency keys go by the clock. */
function judgeDate(date: string | undefined, now: Micros): Verdict {
	const there = date === undefined ? Number.NaN : Date.parse(date) * microsPerMs;
	if (Number.isNaN(there)) return skipped('it does not say what time it is');
	const ahead = there - now;
	if (Math.abs(ahead) <= 300 * microsPerSecond) return ok('its clock and the one of this machine agree');
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

/** A server keeps these commands to the machine that owns its database. */
const there = 'on the machine of the server, with its --db or --profile:';

/** Null: the server does not answer that. */
function judgeQueue(queue: SendingProgress | null): Verdict {
	if (queue === null) return skipped('it does not tell how its queue is');
	const { paused, has_worker } = queue;
	if (paused === null)
		return has_worker === false
			? warning('no process sends at the moment: what it accepts waits', `${there}\nmailctl worker`)
			: ok('nothing holds its queue up');
	const said = textOf(paused) ?? 'it does not say why';
	const steps = stepsOf(causeOf(said), (...words) => ['mailctl', ...words].join(' '));
	return problem(`its queue stands still: ${said}`, [there, ...steps].join('\n'));
}
