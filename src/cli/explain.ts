/** Each setting with where it comes from, for `config explain`. */
import { type Paths, readToken } from './config.js';
import type { RawGlobals } from './globals.js';
import type { Env, Origin, Settings } from './settings.js';

export interface Explained {
	key: string;
	value: string | number | boolean | null;
	level: Origin['level'];
	/** The flag, variable or profile; `null` for a default. */
	source: string | null;
}

/** Reads nothing but what is settled, and whether a token is stored; never the token. */
export function explain(settings: Settings, globals: RawGlobals, env: Env, paths: Paths): Explained[] {
	const { profile, origin } = settings.target;
	const target = settings.target.target();
	const at = target.kind === 'local' ? target.url : target.baseUrl;
	const { output, color, timeoutMs, retries, deadline, input, debug, list, now } = settings;
	return [
		row('profile', profile, origin),
		row(target.kind === 'local' ? 'db' : 'baseUrl', at, origin),
		token(settings, globals, env, paths),
		row('output', output.value, output.origin),
		row('color', color.value, color.origin),
		row('timeout', `${timeoutMs.value}ms`, timeoutMs.origin),
		row('deadline', deadline.value?.text ?? null, deadline.origin),
		row('retries', retries.value, retries.origin),
		row('input', input.value, input.origin),
		row('debug', debug.value, debug.origin),
		row('list', list.value, list.origin),
		row('now', now.value === null ? null : new Date(now.value / 1000).toISOString(), now.origin),
		proxy(globals, env),
	];
}

function row(key: string, value: Explained['value'], { level, name }: Origin): Explained {
	return { key, value, level, source: name };
}

function token({ target }: Settings, globals: RawGlobals, env: Env, paths: Paths): Explained {
	const hidden = '********';
	if (globals.tokenFile !== undefined) return row('token', hidden, { level: 'flag', name: '--token-file' });
	if (globals.tokenStdin === true) return row('token', hidden, { level: 'flag', name: '--token-stdin' });
	const variable = ['MAILCTL_TOKEN', 'MAILCTL_TOKEN_FILE'].find((name) => env[name]);
	if (variable !== undefined) return row('token', hidden, { level: 'environment', name: variable });
	const stored = target.target().kind === 'remote' && target.profile !== null ? target.profile : null;
	if (stored !== null && readToken(paths, stored) !== null)
		return row('token', hidden, { level: 'profile', name: `profile ${stored}` });
	return row('token', null, { level: 'default', name: null });
}

function proxy(globals: RawGlobals, env: Env): Explained {
	if (globals.proxy !== undefined)
		return row('proxy', host(globals.proxy), { level: 'flag', name: '--proxy' });
	const names = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'];
	const name = names.find((one) => env[one]);
	if (name === undefined) return row('proxy', null, { level: 'default', name: null });
	return row('proxy', host(env[name] ?? ''), { level: 'environment', name });
}

/** Without the user and password a proxy's URL may hold. */
function host(url: string): string {
	return URL.canParse(url) ? new URL(url).host : url.replace(/^.*@/, '');
}
