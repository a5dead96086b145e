import { need } from '../../api/capabilities.js';
import { microsPerMs, microsPerSecond } from '../../api/datetime.js';
import { codeOf, isForbidden } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import { causeOf } from '../../api/pauses.js';
import { isLoopback } from '../../api/schema/url.js';
import { refusedTokenHint } from '../config/token.js';
import { hintText, unnamed } from '../frame/command-line.js';
import type { Connection, Target } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import type { Checks, Surroundings, Verdict } from './checks.js';
import { firstError, ok, once, problem, Skip, warning } from './checks.js';
import { judgeClock, judgeValidity, machineChecks, validityOf } from './machine.js';
import { stepsOf } from './sending.js';

export async function remoteChecks(
	cx: CommandContext,
	asked: Extract<Target, { kind: 'remote' }>,
	around: Surroundings,
): Promise<{ checks: Checks; close(): Promise<void> }> {
	const baseUrl = new URL(asked.baseUrl);
	let refusal: CliError | null = null;
	const connection = await cx.connection().catch((error: unknown) => {
		if (!(error instanceof CliError)) throw error;
		// The token is unreadable or belongs to another service. The other checks run without a token.
		refusal = error;
		return cx.connectTo({ ...asked, token: null });
	});
	const hasToken = connection.target.kind === 'remote' && connection.target.token !== null;
	return {
		checks: {
			...machineChecks(cx.paths, [], null),
			'config.token': () => {
				if (refusal === null) return ok(hasToken ? 'a token is set' : 'no token is set');
				return problem(refusal.message, refusal.hint === null ? null : hintText(refusal.hint, unnamed));
			},
			'connection.url': () => judgeUrl(baseUrl, cx.globals.insecure === true),
			...(baseUrl.protocol === 'https:' && {
				'connection.certificate': () => judgeCertificate(cx, baseUrl, around),
			}),
			...serviceChecks(cx, { connection, hasToken }, around),
		},
		close: async () => {
			if (refusal !== null) await connection.close();
		},
	};
}

function judgeUrl({ protocol, hostname, host, origin }: URL, isInsecure: boolean): Verdict {
	if (protocol !== 'https:')
		return isLoopback(hostname)
			? ok(`${origin} is this machine`)
			: warning(`plain http exposes the token and all data on the way to ${host}`, `use https://${host}`);
	if (!isInsecure) return ok(`${origin} uses TLS`);
	return warning('--insecure lets anyone on the network path read the token', 'use --ca-cert FILE instead');
}

async function judgeCertificate(cx: CommandContext, baseUrl: URL, around: Surroundings): Promise<Verdict> {
	around.goOnline();
	const { goesThroughProxy } = await import('../connect/remote.js');
	if (goesThroughProxy({ baseUrl, proxy: cx.globals.proxy ?? null, env: cx.io.env }))
		throw new Skip('the connection goes through a proxy');
	const host = baseUrl.hostname.replace(/^\[|\]$/g, '');
	const port = Number(baseUrl.port || 443);
	const [ca, isChecked] = [await cx.authority(), cx.globals.insecure !== true];
	try {
		const asked = { host, port, ca, rejectUnauthorized: isChecked };
		const validTo = await validityOf(asked, around.timeout());
		return judgeValidity(host, validTo, {
			now: around.now(),
			isChecked,
			renew: 'renew the certificate on the server',
		});
	} catch (error) {
		// The check `service.answers` already reports the reason.
		if (['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED'].includes(codeOf(error))) throw new Skip('no connection');
		const says = `no trusted TLS with ${host}:${port}: ${firstError(error)}`;
		return problem(says, 'if you run your own certificate authority, add --ca-cert FILE');
	}
}

/** `json` is null if the body is not JSON. */
interface Answer {
	status: number;
	headers: Readonly<Record<string, string>>;
	json: unknown;
}

const listsPath = '/sub/lists/';

function serviceChecks(
	cx: CommandContext,
	{ connection: { api, exchange }, hasToken }: { connection: Connection; hasToken: boolean },
	{ now, goOnline, timeout }: Surroundings,
): Checks {
	const ask = (path: string, more: { token?: null } = {}) =>
		once(async () => {
			goOnline();
			const signal = timeout();
			try {
				const { body, ...answer } = await exchange({ method: 'GET', path, signal, ...more });
				return { ...answer, json: jsonOf(body), at: now() };
			} catch (error) {
				throw signal.aborted ? signal.reason : error;
			}
		});
	const lists = ask(`${listsPath}?page_size=1`);
	const ready = ask('/readyz', { token: null });
	const root = ask('/', { token: null });
	const answered = (asked: typeof lists) =>
		asked().catch((error: unknown) => {
			throw error instanceof Skip ? error : new Skip('the service does not answer');
		});
	const description = async () => descriptionOf(await answered(root));
	const mustBeOurs = async () => {
		if ((await description()) === null) throw new Skip('the service is not a mailctl server');
	};
	const refusalOfLists = async () => {
		const answer = await answered(lists);
		if (answer.status === 401 || answer.status === 403) return answer.status;
		if (!isPage(answer)) throw new Skip('the service does not return lists');
		return null;
	};
	return {
		'service.answers': async () => {
			try {
				return judgeAnswer(await lists());
			} catch (error) {
				if (error instanceof Skip) throw error;
				return problem(firstError(error), 'check the base URL, the network, and that the service runs');
			}
		},
		'service.kind': async () => {
			const ours = await description();
			if (ours !== null) return ok(ours);
			await refusalOfLists();
			return ok('not a mailctl service: the extensions of mailctl are not available');
		},
		'service.token': async () => {
			const status = await refusalOfLists();
			if (status === null) return ok(hasToken ? 'the token is accepted' : 'the service needs no token');
			// A mailctl server answers 403 if the token lacks `read`. Other services may answer 403 to any bad token.
			if (hasToken && status === 403 && (await description()) !== null)
				return warning('the token is accepted, but may not read lists (403)');
			const fix = hintText(refusedTokenHint(cx.settings, cx.globals, cx.io.env), unnamed);
			return problem(`${hasToken ? 'the token is refused' : 'the service needs a token'} (${status})`, fix);
		},
		'service.pace': async () => {
			const { durationMs } = await answered(lists);
			const says = `one small request took ${Math.round(durationMs)} ms`;
			return durationMs > 2_000 ? warning(`${says}: every command will be slow`) : ok(says);
		},
		'service.clock': async () => {
			const { headers, at } = await answered(lists);
			const told = Date.parse(headers['date'] ?? '') * microsPerMs;
			if (Number.isNaN(told)) throw new Skip('the service does not report its time');
			return judgeClock("the service's", told - at, 300 * microsPerSecond);
		},
		'service.ready': async () => {
			await mustBeOurs();
			const { status, json } = await answered(ready);
			if (status === 200) return ok('the database of the service answers');
			const detail = isRecord(json) ? textOf(json['detail']) : null;
			const says = `the service is not ready (${status}): ${detail ?? 'no reason given'}`;
			return problem(says, 'run mailctl doctor on the machine of the service');
		},
		'service.queue': async () => {
			await mustBeOurs();
			// A token with the scope `send` may ask for the progress of any submission, even of one that does not exist.
			const submission = '00000000-0000-4000-8000-000000000000';
			const progress = async () =>
				(await need(api, 'messages')).progress({ submission }, { signal: timeout() });
			const { paused, has_worker } = await progress().catch((error) => {
				throw new Skip(
					isForbidden(error)
						? 'the token has no permission to read the queue of the service'
						: 'the service does not report the state of its queue',
				);
			});
			// These commands work only on the machine that has the server's database.
			const there = 'on the machine of the server, with the same --db or --profile as the server:';
			if (paused !== null) {
				const said = textOf(paused) ?? 'no reason given';
				const steps = stepsOf(causeOf(said), (...words) => ['mailctl', ...words].join(' '));
				return problem(`the service sends nothing: ${said}`, `${there}\n${steps}`);
			}
			if (has_worker !== false) return ok('the queue of the service is not paused');
			return warning('no worker is running, so accepted messages wait', `${there}\nmailctl worker`);
		},
	};
}

/** Reads the description that a mailctl server gives at `/`. The answer is untrusted. */
function descriptionOf({ status, json }: Answer): string | null {
	if (status !== 200 || !isRecord(json) || json['service'] !== 'mailctl') return null;
	const { version, extensions } = json;
	const texts = Array.isArray(extensions) ? extensions.slice(0, 50).map(textOf) : [];
	const names = texts.filter((name) => name !== null).join(', ');
	return `mailctl ${textOf(version) ?? 'of unknown version'} with ${names || 'no extensions'}`;
}

function jsonOf(body: Uint8Array): unknown {
	try {
		return JSON.parse(new TextDecoder().decode(body));
	} catch {
		return null;
	}
}

function textOf(value: unknown): string | null {
	if (typeof value !== 'string' || value === '') return null;
	return value.length <= 100 ? value : `${value.slice(0, 99)}…`;
}

function judgeAnswer(answer: Answer): Verdict {
	const { status, headers } = answer;
	const check = 'check the base URL';
	if (status >= 500) return problem(`the service answers ${status}: server error`, 'try again later');
	if (status === 429) return warning('the service answers 429: too many requests', 'try again later');
	if (status >= 300 && status < 400)
		return problem(`the service redirects to ${textOf(headers['location']) ?? ''}`, check);
	// 401 and 403 show that the service checks tokens.
	if (status === 401 || status === 403 || isPage(answer)) return ok(`the service answers ${status}`);
	return problem(`${listsPath} answers ${status} without lists: this is not the mailing service`, check);
}

/** An unrelated server is unlikely to answer with the API's page format. */
function isPage({ status, json }: Answer): boolean {
	return (
		status < 300 && isRecord(json) && typeof json['count'] === 'number' && Array.isArray(json['results'])
	);
}
