import type { WireResponse } from '../../api/api.js';
import { need } from '../../api/capabilities.js';
import { microsPerMs, microsPerSecond } from '../../api/datetime.js';
import { codeOf } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import { causeOf } from '../../api/pauses.js';
import { isLoopback } from '../../api/schema/url.js';
import { refusedTokenHint } from '../config/token.js';
import { hintText, unnamed } from '../frame/command-line.js';
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
	Skip,
	type Surroundings,
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
	const baseUrl = new URL(asked.baseUrl);
	return {
		checks: {
			...configChecks(cx.paths, [], null),
			'config.token': () => token,
			'connection.url': () => judgeUrl(baseUrl, cx.globals.insecure === true),
			...(baseUrl.protocol === 'https:' && {
				'connection.certificate': () => judgeCertificate(cx, baseUrl, around),
			}),
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
		return {
			connection,
			token: ok(hasToken(connection) ? 'a token is set' : 'no token is set'),
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

/** Every machine on the way can read the token on plain http. */
function judgeUrl({ protocol, hostname, host, origin }: URL, isInsecure: boolean): Verdict {
	if (protocol !== 'https:')
		return isLoopback(hostname)
			? ok(`${origin} is this machine`)
			: warning(`plain http shows the token and all data on the way to ${host}`, `use https://${host}`);
	if (!isInsecure) return ok(`${origin} uses TLS`);
	return warning('--insecure lets any machine on the way take the token', 'use --ca-cert FILE instead');
}

async function judgeCertificate(
	cx: CommandContext,
	baseUrl: URL,
	{ now, goOnline, timeout }: Surroundings,
): Promise<Verdict> {
	goOnline();
	const { goesThroughProxy } = await import('../connect/remote.js');
	if (goesThroughProxy({ baseUrl, proxy: cx.globals.proxy ?? null, env: cx.io.env }))
		throw new Skip('the connection goes through a proxy');
	const host = baseUrl.hostname.replace(/^\[|\]$/g, '');
	const port = Number(baseUrl.port || 443);
	const [ca, isChecked] = [await cx.authority(), cx.globals.insecure !== true];
	try {
		const validTo = await validityOf({ host, port, ca, isChecked, signal: timeout() });
		return judgeValidity(host, validTo, { now: now(), isChecked, renew: 'renew it on the server' });
	} catch (error) {
		// The check of the service reports why it cannot be reached.
		if (['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED'].includes(codeOf(error))) throw new Skip('no connection');
		const says = `no trusted TLS with ${host}:${port}: ${firstError(error)}`;
		return problem(says, 'if you run your own authority, name it with --ca-cert FILE');
	}
}

const listsPath = '/sub/lists/';

function serviceChecks(cx: CommandContext, connection: Connection, around: Surroundings): Checks {
	const { api, exchange } = connection;
	const { now, goOnline, timeout } = around;
	const ask = (path: string, token: null | undefined) =>
		once(async () => {
			goOnline();
			const signal = timeout();
			try {
				const response = await exchange({ method: 'GET', path, ...(token === null && { token }), signal });
				return { response, at: now() };
			} catch (error) {
				throw signal.aborted ? signal.reason : error;
			}
		});
	const lists = ask(`${listsPath}?page_size=1`, undefined);
	const ready = ask('/readyz', null);
	const askRoot = ask('/', null);
	const answered = <T>(answer: Promise<T>) =>
		answer.catch((error: unknown): T => {
			throw error instanceof Skip ? error : new Skip('the service does not answer');
		});
	const root = async () => descriptionOf((await answered(askRoot())).response);
	const mustBeOurs = async () => {
		if ((await root()) === null) throw new Skip('it is not a mailctl server');
	};
	return {
		'service.answers': async () => {
			try {
				return judgeAnswer((await lists()).response);
			} catch (error) {
				if (error instanceof Skip) throw error;
				return problem(firstError(error), 'check the base URL, the network, and that the service runs');
			}
		},
		'service.kind': async () => ok((await root()) ?? 'another service: only the documented API is there'),
		'service.token': async () => {
			const { status, ...answer } = (await answered(lists())).response;
			if (status !== 401 && status !== 403) {
				if (!isPage({ status, ...answer })) throw new Skip('the service does not answer with lists');
				return ok(hasToken(connection) ? 'the token is accepted' : 'the service needs no token');
			}
			// A 403 of mailctl means a token without `read`; of others any refusal.
			if (hasToken(connection) && status === 403 && (await root()) !== null)
				return warning('the token is accepted, but may not read lists (403)');
			const fix = hintText(refusedTokenHint(cx.settings, cx.globals, cx.io.env), unnamed);
			const says = hasToken(connection) ? 'the token is refused' : 'the service needs a token';
			return problem(`${says} (${status})`, fix);
		},
		'service.pace': async () => {
			const { durationMs } = (await answered(lists())).response;
			const says = `one small request took ${Math.round(durationMs)} ms`;
			return durationMs > 2_000 ? warning(`${says}: every command will be slow`) : ok(says);
		},
		'service.clock': async () => {
			const { response, at } = await answered(lists());
			const { date } = response.headers;
			const ahead = (date === undefined ? Number.NaN : Date.parse(date) * microsPerMs) - at;
			if (Number.isNaN(ahead)) throw new Skip('the service does not tell its time');
			if (Math.abs(ahead) <= 300 * microsPerSecond) return ok("its clock agrees with this machine's");
			return warning(
				`its clock is ${spanText(ahead)} ${ahead > 0 ? 'ahead of' : 'behind'} this machine's`,
				'set the clock that is wrong: timedatectl set-ntp true',
			);
		},
		'service.ready': async () => {
			await mustBeOurs();
			const { status, body } = (await answered(ready())).response;
			if (status === 200) return ok('its database answers');
			const json = jsonOf(body);
			const detail = isRecord(json) ? textOf(json['detail']) : null;
			const says = `it is not ready (${status}): ${detail ?? 'no reason given'}`;
			return problem(says, 'run mailctl doctor on its machine');
		},
		'service.queue': async () => {
			await mustBeOurs();
			// Every scope may ask for the progress of a submission, even of one that does not exist.
			const submission = '00000000-0000-4000-8000-000000000000';
			const progress = async () =>
				(await need(api, 'messages')).progress({ submission }, { signal: timeout() });
			const { paused, has_worker } = await progress().catch(() => {
				throw new Skip('it does not tell the state of its queue');
			});
			// A server keeps these commands to the machine that owns its database.
			const there = 'on the machine of the server, with its --db or --profile:';
			if (paused !== null) {
				const said = textOf(paused) ?? 'no reason given';
				const steps = stepsOf(causeOf(said), (...words) => ['mailctl', ...words].join(' '));
				return problem(`it sends nothing: ${said}`, [there, ...steps].join('\n'));
			}
			if (has_worker !== false) return ok('its queue is not paused');
			return warning('no worker is running, so accepted messages wait', `${there}\nmailctl worker`);
		},
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
	const { status, headers } = response;
	const check = 'check the base URL';
	if (status >= 500) return problem(`it answers ${status}: the service itself has failed`, 'try again later');
	if (status === 429) return warning('it answers 429: too many requests', 'try again later');
	// A refusal shows that the server knows tokens.
	if (status === 401 || status === 403) return ok(`it answers ${status}`);
	if (status >= 300 && status < 400)
		return problem(`it redirects to ${short(headers['location'] ?? '')}`, check);
	if (isPage(response)) return ok(`it answers ${status}`);
	return problem(`${listsPath} answers ${status} without lists: this is another service`, check);
}

/** The document's list envelope, as far as a stranger's answer would not have it too. */
function isPage({ status, body }: Pick<WireResponse, 'status' | 'body'>): boolean {
	const json = status < 300 ? jsonOf(body) : null;
	return isRecord(json) && typeof json['count'] === 'number' && Array.isArray(json['results']);
}
