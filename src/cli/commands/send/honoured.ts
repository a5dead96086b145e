/** Options of `send` that a deployment cannot honour: refused before anything is sent, never ignored. */
import { need } from '../../../api/capabilities.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import type { SendOptions } from './options.js';

type Honoured = Partial<
	Pick<
		SendOptions,
		| 'campaign'
		| 'results'
		| 'idempotencyKey'
		| 'rate'
		| 'connections'
		| 'wait'
		| 'retryUnknown'
		| 'strictVars'
		| 'template'
	>
> & {
	/** Recipients come from a list or a file. */
	isJob: boolean;
};

/** `MissingExtension` or `UsageError` (exit 2). Goes to the deployment only when one of these options is given. */
export async function assertHonoured(cx: CommandContext, options: Honoured): Promise<void> {
	const { campaign, results, idempotencyKey, rate, connections, retryUnknown, isJob } = options;
	const given = [campaign, results, idempotencyKey, rate, connections].some((one) => one !== undefined);
	const concernsJobs = isJob && (options.wait === false || options.strictVars === true);
	if (!given && !concernsJobs && retryUnknown !== true) return;
	const { api, local } = await cx.connection();
	const { ext, idempotentSend } = await api.capabilities();
	const keepsMailings = local !== null || ext.mailings !== undefined;
	if (retryUnknown === true && keepsMailings)
		throw new UsageError('--retry-unknown is for deployments of others: here nothing is left unknown');
	if (local !== null) return;
	if (isJob && !keepsMailings) assertKeptHere(options);
	else if (rate !== undefined || connections !== undefined) throw sentElsewhere(options);
	if (campaign !== undefined) await need(api, 'mailings');
	if (results !== undefined && !(isJob && !keepsMailings)) await need(api, 'messages');
	if (idempotencyKey !== undefined && !idempotentSend)
		throw new UsageError(
			'this deployment has no idempotency keys: they are an extension of mailctl’s own engine and server',
		);
}

/** Where this command makes the calls itself, and nobody else knows what there is to send. */
function assertKeptHere({ wait, strictVars, template }: Honoured): void {
	if (wait === false)
		throw new UsageError(
			'--no-wait cannot be kept: this deployment has no jobs, so this command does the work',
		);
	if (strictVars === true && template !== undefined)
		throw new UsageError(
			'--strict-vars cannot be kept: this deployment does not tell what is in its templates',
		);
}

function sentElsewhere({ rate }: Honoured): UsageError {
	const flag = rate === undefined ? '--connections' : '--rate';
	return new UsageError(`${flag} is for the machine that owns the database: a deployment sends as it does`, {
		hint: `on a server of ours: mailctl serve ${flag} …`,
	});
}
