/** Where a webhook may not lead to a URL: the way out. */

import type { Api } from '../../../api/api.js';
import { shownDatabase } from '../../../store/url.js';
import { type Hint, mailctl, namedTarget } from '../../frame/command-line.js';
import type { Connection, LocalEngine } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import type { Refused } from '../../verbs/refusals.js';

const setting = 'allow_private_webhooks';

/** The hint for a URL that the service refuses. */
export async function urlHint(cx: CommandContext): Promise<(refused: Refused) => Hint | undefined> {
	const { local } = await cx.connection();
	return ({ path, code }) => {
		if (path !== 'url') return undefined;
		if (code === 'private_target') return [allowPrivateTargets(local), ' allows them'];
		return 'a URL of http or https: https://hooks.example.com/in';
	};
}

/** The command that lets notifications go to private addresses, on the database that this call is about. */
export function allowPrivateTargets(local: Connection['local']): Hint {
	const words = ['engine', 'settings', 'set', setting, 'true'];
	if (local !== null) return mailctl(...words);
	return [mailctl('--db', 'DATABASE', ...words), ', on the database that the deployment serves,'];
}

/**
 * Allows private targets by consent, on a database of this machine that refuses them, or on the default one where this
 * deployment seems to serve it: a copy has its secrets too, so what is returned takes the consent back where the
 * deployment refuses all the same. Throws `UsageError` where a script gives none.
 */
export async function agreeToPrivateTargets(cx: CommandContext): Promise<() => Promise<void>> {
	const { api, local, target } = await cx.connection();
	if (local !== null) {
		await agree(cx, local, target.kind === 'local' ? target.url : '');
		return async () => undefined;
	}
	// A default database that cannot be opened is of no use to this deployment.
	const served = await servedHere(cx, api).catch(() => null);
	if (served === null) return async () => undefined;
	try {
		const isSet = await agree(cx, served.local, cx.paths.database);
		return async () => (isSet ? takeBack(cx) : undefined);
	} finally {
		await served.close();
	}
}

async function takeBack(cx: CommandContext): Promise<void> {
	const { local, close } = await cx.connectTo({ kind: 'local', url: cx.paths.database, create: false });
	await local?.settings.set({ [setting]: null }).finally(close);
	await cx.note(`${setting} is unset again: the deployment has not taken the webhook`);
}

/** The default database, where a deployment at a URL of this machine serves it: both have the same secrets. */
async function servedHere(
	cx: CommandContext,
	api: Api,
): Promise<{ local: LocalEngine; close(): Promise<void> } | null> {
	if (namedTarget(cx.globals, cx.settings, cx.paths).ofMachine === undefined) return null;
	const target = { kind: 'local', url: cx.paths.database, create: false } as const;
	const { api: own, local, close } = await cx.connectTo(target);
	const [theirs, ours] = await Promise.all([secretsOf(cx, api), secretsOf(cx, own).catch(() => null)]);
	if (local !== null && theirs !== null && theirs === ours) return { local, close };
	await close();
	return null;
}

/** Null: the deployment tells none, or not to this token. */
async function secretsOf({ signal }: CommandContext, api: Api): Promise<string | null> {
	const { deliveries } = (await api.capabilities()).ext;
	const secrets = await deliveries?.secrets({ signal }).catch(() => null);
	return secrets == null ? null : secrets.map(({ secret }) => secret).join(' ');
}

/** False: they are allowed already. */
async function agree(cx: CommandContext, local: LocalEngine, url: string): Promise<boolean> {
	if ((await local.settings.get())[setting] === 'true') return false;
	const why =
		`The database ${shownDatabase(url)} refuses webhooks to private addresses, such as that of this machine. The setting ${setting} allows ` +
		'them, for all its webhooks, until it is unset.';
	if (cx.globals.yes !== true && !cx.canAsk)
		throw new UsageError(`this will set ${setting} to true`, { hint: 'add --yes to agree' });
	if (cx.globals.yes !== true) await cx.agree(why, 'Set it to true?');
	await local.settings.set({ [setting]: 'true' });
	await cx.hint([mailctl('engine', 'settings', 'unset', setting), ' refuses them again']);
	return true;
}
