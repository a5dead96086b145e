/** Options of `send` that a deployment cannot honour: refused before anything is sent, never ignored. */
import { need } from '../../api/capabilities.js';
import type { CommandContext } from '../context.js';
import { UsageError } from '../errors.js';
import type { SendOptions } from './send-options.js';

type Honoured = Pick<SendOptions, 'campaign' | 'results' | 'idempotencyKey' | 'rate' | 'connections'>;

/** `MissingExtension` or `UsageError` (exit 2). Goes to the deployment only when one of these options is given. */
export async function assertHonoured(cx: CommandContext, options: Honoured): Promise<void> {
	const { campaign, results, idempotencyKey, rate, connections } = options;
	if ([campaign, results, idempotencyKey, rate, connections].every((one) => one === undefined)) return;
	const { api, local } = await cx.connection();
	if (local !== null) return;
	if (rate !== undefined || connections !== undefined) {
		const flag = rate === undefined ? '--connections' : '--rate';
		throw new UsageError(`${flag} is for the machine that owns the database: a deployment sends as it does`, {
			hint: `on a server of ours: mailctl serve ${flag} …`,
		});
	}
	if (campaign !== undefined) await need(api, 'mailings');
	if (results !== undefined) await need(api, 'messages');
	if (idempotencyKey !== undefined && !(await api.capabilities()).idempotentSend)
		throw new UsageError(
			'this deployment has no idempotency keys: they are an extension of mailctl’s own engine and server',
		);
}
