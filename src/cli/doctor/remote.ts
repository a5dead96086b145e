/** The checks of a deployment, from the outside. */
import type { Api } from '../../api/api.js';
import { need } from '../../api/capabilities.js';
import type { CommandContext } from '../context.js';
import { shellWord } from '../shell-word.js';
import { configChecks } from './checks/config.js';
import { connectionChecks } from './checks/connection.js';
import { machineChecks } from './checks/machine.js';
import { serviceChecks } from './checks/service.js';
import type { Check, Surroundings } from './model.js';

/** Throws for a token that cannot be read, as every command does. */
export async function remoteChecks(
	cx: CommandContext,
	surroundings: Surroundings,
): Promise<{ checks: Check[]; close(): Promise<void> }> {
	const { api, exchange, target } = await cx.connection();
	if (target.kind !== 'remote') throw new Error('a deployment was to be looked at');
	const { caCert, insecure, proxy } = cx.globals;
	const baseUrl = new URL(target.baseUrl);
	const way = {
		baseUrl,
		caCert: caCert === undefined ? null : await cx.sources.file(caCert, '--ca-cert').text(),
		isInsecure: insecure === true,
		isProxied: proxy !== undefined || hasProxy(baseUrl, cx.io.env),
		clock: cx.clock,
	};
	const hasToken = target.token !== null;
	const login = loginLine(cx, target.baseUrl);
	return {
		checks: [
			...machineChecks(),
			...configChecks({ paths: cx.paths, secrets: [] }),
			...connectionChecks(way, surroundings),
			...serviceChecks({ exchange, hasToken, clock: cx.clock, login, whyPaused: pauseOf(api) }, surroundings),
		],
		// The context closes what it opened.
		close: async () => {},
	};
}

/** Told with the progress of any scope, so also of one that there is not. */
function pauseOf(api: Api): (signal: AbortSignal) => Promise<string | null> {
	return async (signal) => {
		const messages = await need(api, 'messages');
		return (await messages.progress({ submission: '00000000-0000-4000-8000-000000000000' }, { signal }))
			.paused;
	};
}

function loginLine({ settings }: CommandContext, baseUrl: string): string {
	const { profile } = settings.target;
	const named = profile === null ? '' : ` --profile ${shellWord(profile)}`;
	return `mailctl login${named} --base-url ${shellWord(baseUrl)}`;
}

/** Whether the environment names one for it; which hosts go past it is left to the client. */
function hasProxy({ protocol, hostname }: URL, env: CommandContext['io']['env']): boolean {
	if (/^(localhost|127\.|\[::1\])/.test(hostname)) return false;
	const name = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
	return (env[name] ?? env[name.toLowerCase()] ?? '') !== '';
}
