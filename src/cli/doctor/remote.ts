/** The checks of a deployment, from the outside. */
import type { Api } from '../../api/api.js';
import { need } from '../../api/capabilities.js';
import type { SendingProgress } from '../../api/records.js';
import { tokenOrigin } from '../config/settings.js';
import { refusedTokenHint } from '../config/token.js';
import { hintText, mailctl, unnamed } from '../frame/command-line.js';
import type { Connection, Target } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { lookAtCertificate } from './certificate.js';
import { configChecks } from './checks/config.js';
import { connectionChecks } from './checks/connection.js';
import { machineChecks } from './checks/machine.js';
import { serviceChecks } from './checks/service.js';
import { type Check, type CheckEnvironment, ok, problem, type Verdict } from './model.js';
import { moveTo, serverAtOrigin } from './origin.js';

type RemoteTarget = Extract<Target, { kind: 'remote' }>;

/** `close` when the checks are done. */
export async function remoteChecks(
	cx: CommandContext,
	asked: RemoteTarget,
	environment: CheckEnvironment,
): Promise<{ checks: Check[]; close(): Promise<void> }> {
	const { connection, token, close } = await connectAnyhow(cx, asked);
	const { api, exchange, target } = connection;
	if (target.kind !== 'remote') throw new Error('a deployment was to be looked at');
	const { insecure, proxy } = cx.globals;
	const baseUrl = new URL(target.baseUrl);
	const { goesThroughProxy } = await import('../connect/proxied.js');
	const way = {
		baseUrl,
		caCert: await cx.authority(),
		isInsecure: insecure === true,
		isProxied: goesThroughProxy({ baseUrl, proxy: proxy ?? null, env: cx.io.env }),
		clock: cx.clock,
	};
	const hasToken = target.token !== null;
	const login = loginLine(cx, target.baseUrl);
	const replace =
		hasToken && isGiven(cx) ? hintText(refusedTokenHint(cx.settings, cx.globals, cx.io.env), unnamed) : login;
	return {
		checks: [
			...machineChecks(),
			...configChecks({ paths: cx.paths, secrets: [], folder: null }),
			{ name: 'config.token', run: async () => token },
			...connectionChecks(way, environment),
			...serviceChecks(
				{
					...{ exchange, hasToken, clock: cx.clock, login, replace, queue: queueOf(api) },
					baseUrl: target.baseUrl,
					move: (to) => hintText(moveTo(cx, target.baseUrl, to), unnamed),
					speaksTls: (signal) => speaksTls(baseUrl, signal),
					serverAtOrigin: (signal) => serverAtOrigin(cx, target.baseUrl, signal),
				},
				environment,
			),
		],
		close,
	};
}

interface Way {
	connection: Connection;
	/** A note on the token of the request, or on its absence. */
	token: Verdict;
	close(): Promise<void>;
}

/** Without a token where it cannot be read, or belongs to another deployment: other checks still work. */
async function connectAnyhow(cx: CommandContext, asked: RemoteTarget): Promise<Way> {
	try {
		const connection = await cx.connection();
		const has = connection.target.kind === 'remote' && connection.target.token !== null;
		// The context closes this connection.
		return { connection, token: ok(has ? 'a token goes along' : 'no token is given'), close: async () => {} };
	} catch (error) {
		if (!(error instanceof CliError)) throw error;
		const connection = await cx.connectTo({ ...asked, token: null });
		const fix = error.hint === null ? null : hintText(error.hint, unnamed);
		return { connection, token: problem(error.message, fix), close: () => connection.close() };
	}
}

/** The state of the queue, from the progress of a submission that does not exist: every scope has it. */
function queueOf(api: Api): (signal: AbortSignal) => Promise<SendingProgress> {
	return async (signal) => {
		const messages = await need(api, 'messages');
		return await messages.progress({ submission: '00000000-0000-4000-8000-000000000000' }, { signal });
	};
}

/** The token is this call's own, not one that is stored. */
function isGiven({ settings, globals, io, paths }: CommandContext): boolean {
	const { level } = tokenOrigin(settings, globals, io.env, paths);
	return level === 'flag' || level === 'environment';
}

async function speaksTls({ hostname, port }: URL, signal: AbortSignal): Promise<boolean> {
	const host = hostname.replace(/^\[|\]$/g, '');
	const seen = lookAtCertificate({ host, port: Number(port || 80), ca: null, signal });
	return seen.then(
		() => true,
		() => false,
	);
}

function loginLine({ settings }: CommandContext, baseUrl: string): string {
	const { profile } = settings.target;
	const named = profile === null ? [] : ['--profile', profile];
	return hintText(mailctl('login', ...named, '--base-url', baseUrl), unnamed);
}
