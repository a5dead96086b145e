import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import type { WireResponse } from '../../api/api.js';
import { need } from '../../api/capabilities.js';
import { type Micros, microsPerMs, microsPerSecond } from '../../api/datetime.js';
import { codeOf } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import { causeOf } from '../../api/pauses.js';
import { isLoopback } from '../../api/schema/url.js';
import { tokenOrigin } from '../config/settings.js';
import { refusedTokenHint } from '../config/token.js';
import { hintText, mailctl, unnamed } from '../frame/command-line.js';
import type { Connection, Target } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { spanText } from '../render/units.js';
import { judgeValidity, validityOf } from './certificate.js';
import {
	type Checks,
	firstError,
	ok,
	once,
	problem,
	type Surroundings,
	skipped,
	type Verdict,
	warning,
} from './checks.js';
import { configChecks } from './config.js';
import { stepsOf } from './queue.js';

type RemoteTarget = Extract<Target, { kind: 'remote' }>;

export async function remoteChecks(
	cx: CommandContext,
	asked: RemoteTarget,
	around: Surroundings,
): Promise<{ checks: Checks; close(): Promise<void> }> {
	const { connection, token, close } = await connectAnyhow(cx, asked);
	const { goesThroughProxy } = await import('../connect/remote.js');
	const baseUrl = new URL(asked.baseUrl);
	const proxy = cx.globals.proxy ?? null;
	const way = {
		baseUrl,
		ca: await cx.authority(),
		isInsecure: cx.globals.insecure === true,
		isProxied: goesThroughProxy({ baseUrl, proxy, env: cx.io.env }),
	};
	return {
		checks: {
			...configChecks(cx.paths, []),
			'config.token': () => token,
			...connectionChecks(way, around),
			...serviceChecks(cx, connection, around),
		},
		close,
	};
}

/** Without a token where it cannot be read, or belongs to another deployment: other checks still work. */
async function connectAnyhow(
	cx: CommandContext,
	asked: RemoteTarget,
): Promise<{ connection: Connection; token: Verdict; close(): Promise<void> }> {
	try {
		const connection = await cx.connection();
		const token = ok(hasToken(connection) ? 'a token goes along' : 'no token is given');
		return { connection, token, close: async () => {} };
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
	ca: string | null;
	isInsecure: boolean;
	/** A proxy is in between: the deployment is not reached from here. */
	isProxied: boolean;
}

/** Each step runs once, and none after a failed one: a cause is reported once. */
function connectionChecks({ baseUrl, ca, isInsecure, isProxied }: Way, around: Surroundings): Checks {
	const { now, online, timeout } = around;
	const direct = (judge: () => Promise<Verdict>) =>
		online(() => (isProxied ? skipped('a proxy is in between') : judge()));
	const host = baseUrl.hostname.replace(/^\[|\]$/g, '');
	const isSecure = baseUrl.protocol === 'https:';
	const port = Number(baseUrl.port || (isSecure ? 443 : 80));
	const found = once(() => lookUp(host));
	const reached = once(async () =>
		(await found()).level === 'ok' ? knock(host, port, timeout()) : skipped('the name is unknown'),
	);
	return {
		/** Every machine on the way can read the token on plain http. */
		'connection.url': () => {
			if (isInsecure && isSecure)
				return warning(
					'--insecure: any machine on the way may answer in its place, and take the token',
					'leave --insecure out; --ca-cert FILE names an authority of your own',
				);
			if (isSecure) return ok(`${baseUrl.origin} goes over TLS`);
			if (isLoopback(baseUrl.hostname)) return ok(`${baseUrl.origin} does not leave this machine`);
			return warning(
				`plain http to ${baseUrl.host}: the token and all data go in the clear`,
				`use https://${baseUrl.host}`,
			);
		},
		'connection.name': direct(found),
		'connection.port': direct(reached),
		...(isSecure && {
			'connection.certificate': direct(async () => {
				if ((await reached()).level !== 'ok') return skipped('the port is not reached');
				try {
					const isChecked = !isInsecure;
					const validTo = await validityOf({ host, port, ca, isChecked, signal: timeout() });
					return judgeValidity(host, validTo, { now: now(), isChecked, renew: 'renew it on the server' });
				} catch (error) {
					return problem(
						`no trusted TLS with ${host}:${port}: ${firstError(error)}`,
						'--ca-cert FILE names an authority of your own',
					);
				}
			}),
		}),
	};
}

async function lookUp(host: string): Promise<Verdict> {
	if (isIP(host) !== 0) return ok(`${host} is an address itself`);
	try {
		const found = await lookup(host, { all: true });
		return ok(`${host} is ${found.map(({ address }) => address).join(', ')}`);
	} catch (error) {
		const code = codeOf(error);
		return problem(
			`${host}: its name cannot be looked up (${code})`,
			'check the spelling of the base URL, and the DNS of this machine',
		);
	}
}

function knock(host: string, port: number, signal: AbortSignal): Promise<Verdict> {
	return new Promise((resolve) => {
		const socket = connect({ host, port, signal });
		const end = (verdict: Verdict) => {
			socket.destroy();
			resolve(verdict);
		};
		socket.once('connect', () => end(ok(`${host}:${port} takes connections`)));
		socket.once('error', (error) => {
			const why = firstError(signal.aborted ? signal.reason : error);
			end(problem(`${host}:${port}: ${why}`, 'check whether the service runs, and firewalls on the way'));
		});
	});
}

type Heard = { kind: 'answer'; response: WireResponse; at: Micros } | { kind: 'silence'; why: string };

const listsPath = '/sub/lists/';
const unserved = 'the service does not answer as it should';
const elsewhere = 'check the base URL';

function serviceChecks(cx: CommandContext, connection: Connection, around: Surroundings): Checks {
	const { api, exchange } = connection;
	const { now, online, timeout } = around;
	const ask = (path: string, token: null | undefined) =>
		once(async (): Promise<Heard> => {
			const signal = timeout();
			try {
				const response = await exchange({ method: 'GET', path, ...(token === null && { token }), signal });
				return { kind: 'answer', response, at: now() };
			} catch (error) {
				return { kind: 'silence', why: firstError(signal.aborted ? signal.reason : error) };
			}
		});
	const root = ask('/', null);
	const lists = ask(`${listsPath}?page_size=1`, undefined);
	const ready = ask('/readyz', null);
	type Judge = (heard: Extract<Heard, { kind: 'answer' }>) => Verdict | Promise<Verdict>;
	const answered = (hear: () => Promise<Heard>, judge: Judge) =>
		online(async () => {
			const heard = await hear();
			return heard.kind === 'answer' ? judge(heard) : skipped('the service does not answer');
		});
	const isOurs = async () => {
		const heard = await root();
		return heard.kind === 'answer' && descriptionOf(heard.response) !== null;
	};
	const ofOurs = (judge: () => Promise<Verdict>) =>
		answered(root, async () => ((await isOurs()) ? judge() : skipped('it is not a mailctl server')));
	return {
		'service.answers': online(async () => {
			const heard = await lists();
			if (heard.kind === 'answer') return judgeAnswer(heard.response);
			return problem(heard.why, `${elsewhere}, its scheme, and whether the service runs`);
		}),
		'service.kind': answered(root, ({ response }) => {
			const found = descriptionOf(response);
			return ok(found ?? 'not a mailctl server: only the documented API is there');
		}),
		'service.token': answered(lists, async ({ response }) => {
			const { status } = response;
			if (status !== 401 && status !== 403) {
				if (!isPage(response)) return skipped(unserved);
				return ok(hasToken(connection) ? 'the token is accepted' : 'it wants no token');
			}
			if (!hasToken(connection))
				return problem(`it wants a token, and none is given (${status})`, loginOf(cx));
			// A 403 of mailctl means a token without `read`; of others any refusal.
			if (status === 403 && (await isOurs()))
				return warning('the token is accepted, and may not read lists (403)');
			return problem(`the token is refused (${status})`, replacementOf(cx));
		}),
		'service.pace': answered(lists, ({ response }) => judgePace(response.durationMs)),
		'service.clock': answered(lists, ({ response, at }) => judgeDate(response.headers['date'], at)),
		'service.ready': ofOurs(async () => {
			const heard = await ready();
			if (heard.kind === 'silence') return problem(heard.why);
			const { status, body } = heard.response;
			if (status === 200) return ok('its database answers');
			const json = jsonOf(body);
			const detail = isRecord(json) ? textOf(json['detail']) : null;
			const says = `it is not ready (${status}): ${detail ?? 'no reason given'}`;
			return problem(says, 'run mailctl doctor on the machine of the server');
		}),
		'service.queue': ofOurs(async () => {
			// Every scope may ask for the progress of a submission, even of one that does not exist.
			const submission = '00000000-0000-4000-8000-000000000000';
			const progress = async () =>
				(await need(api, 'messages')).progress({ submission }, { signal: timeout() });
			const queue = await progress().catch(() => null);
			if (queue === null) return skipped('it does not say how its queue is');
			// A server keeps these commands to the machine that owns its database.
			const there = 'on the machine of the server, with its --db or --profile:';
			if (queue.paused === null)
				return queue.has_worker === false
					? warning('no process sends at the moment: what it accepts waits', `${there}\nmailctl worker`)
					: ok('nothing holds its queue up');
			const said = textOf(queue.paused) ?? 'no reason given';
			const steps = stepsOf(causeOf(said), (...words) => ['mailctl', ...words].join(' '));
			return problem(`its queue stands still: ${said}`, [there, ...steps].join('\n'));
		}),
	};
}

/** The self-description of a mailctl server at `/`, read without trust; null: it is another service. */
function descriptionOf({ status, body }: WireResponse): string | null {
	const json = status === 200 ? jsonOf(body) : null;
	if (!isRecord(json) || json['service'] !== 'mailctl') return null;
	const { version, extensions } = json;
	const names = Array.isArray(extensions)
		? extensions.slice(0, 50).flatMap((name) => textOf(name) ?? [])
		: [];
	return `mailctl ${textOf(version) ?? 'of unknown version'} with ${names.join(', ') || 'no extensions'}`;
}

function jsonOf(body: Uint8Array): unknown {
	try {
		return JSON.parse(new TextDecoder().decode(body));
	} catch {
		return null;
	}
}

function textOf(value: unknown): string | null {
	return typeof value === 'string' && value !== '' ? short(value) : null;
}

function short(text: string): string {
	return text.length <= 100 ? text : `${text.slice(0, 99)}…`;
}

function judgeAnswer(response: WireResponse): Verdict {
	const { status, headers, body } = response;
	if (status >= 500) return problem(`it answers ${status}: the service itself has failed`, 'try again later');
	if (status === 404)
		return problem(`it has no ${listsPath}: this is not the service, or its base URL has a path`, elsewhere);
	if (status === 429) return warning('it answers 429: too many requests', 'try again later');
	// A refusal shows that the server knows tokens.
	if (status === 401 || status === 403) return ok(`it answers ${status}`);
	if (status >= 400)
		return problem(`it answers ${status} to a call that every such service takes`, elsewhere);
	if (status >= 300) return problem(`it redirects to ${short(headers['location'] ?? '')}`, elsewhere);
	if (isPage(response)) return ok(`it answers ${status}`);
	const isWebPage = /^\s*</.test(new TextDecoder().decode(body.subarray(0, 1_000)));
	const what = isWebPage ? 'a web page' : 'something else than lists';
	return problem(`it is not this service: ${listsPath} answers ${status} with ${what}`, elsewhere);
}

/** The document's list envelope, as far as a stranger's answer would not have it too. */
function isPage({ status, body }: WireResponse): boolean {
	const json = status < 300 ? jsonOf(body) : null;
	return isRecord(json) && typeof json['count'] === 'number' && Array.isArray(json['results']);
}

function loginOf({ settings }: CommandContext): string {
	const { profile } = settings.target;
	const named = profile === null ? [] : ['--profile', profile];
	const target = settings.target.target();
	const words = target.kind === 'remote' ? ['--base-url', target.baseUrl] : [];
	return hintText(mailctl('login', ...named, ...words), unnamed);
}

function replacementOf(cx: CommandContext): string {
	const { settings, globals, io, paths } = cx;
	const { level } = tokenOrigin(settings, globals, io.env, paths);
	if (level !== 'flag' && level !== 'environment') return loginOf(cx);
	return hintText(refusedTokenHint(settings, globals, io.env), unnamed);
}

function judgePace(durationMs: number): Verdict {
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
