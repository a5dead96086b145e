/** HTTP authorization of a webhook, as its options say it. */
import type { WebhookInput } from '../../../api/inputs.js';
import type { FileSource } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';

/** The options of `create` and `update`. */
export const authOptions = {
	login: { kind: 'text', summary: 'user name of HTTP authorization; means --auth, wants a password' },
	passwordFile: { kind: 'file', summary: 'read the password from a file' },
	passwordStdin: { kind: 'flag', summary: 'read the password from standard input' },
	auth: { kind: 'tri', summary: 'use HTTP authorization, or not' },
} as const;

interface AuthOptions {
	login?: string | undefined;
	passwordFile?: FileSource | undefined;
	passwordStdin: boolean;
	auth?: boolean | undefined;
}

/** Only the given values: an update never sends a password that was not given. A login means authorization. */
export async function readAuth(cx: CommandContext, options: AuthOptions): Promise<Partial<WebhookInput>> {
	if (options.passwordFile !== undefined && options.passwordStdin) {
		throw new UsageError('--password-file and --password-stdin both name a password; give one');
	}
	const source = options.passwordStdin
		? await cx.sources.file('-', '--password-stdin').text()
		: await options.passwordFile?.text();
	// The line end is the file's, not the password's.
	const password = source?.replace(/\r?\n$/, '');
	const enabled = options.auth ?? (options.login === undefined ? undefined : true);
	return {
		...(enabled !== undefined && { is_auth_enabled: enabled }),
		...(options.login !== undefined && { login: options.login }),
		...(password !== undefined && { password }),
	};
}

/** Throws `UsageError` where authorization is turned on without a login; `known`: that of the webhook. */
export function assertLogin({ is_auth_enabled, login }: Partial<WebhookInput>, known = ''): void {
	if (is_auth_enabled === true && (login ?? known) === '')
		throw new UsageError('--auth without --login: HTTP authorization needs a user name', {
			hint: '--login NAME --password-file FILE',
		});
}

/**
 * The input for a webhook without a password yet. A login needs one, since its target would refuse every notification:
 * it is asked for. Throws `UsageError` where prompts are not possible.
 */
export async function withPassword<I extends Partial<WebhookInput>>(
	cx: CommandContext,
	input: I,
): Promise<I & Partial<WebhookInput>> {
	const { login, is_auth_enabled, password } = input;
	if (login === undefined || login === '' || is_auth_enabled === false || password !== undefined)
		return input;
	if (cx.canAsk) return { ...input, password: await cx.askSecret(`Password of ${login}:`) };
	throw new UsageError('missing --password-file or --password-stdin: the password that goes with --login', {
		hint: 'one that is empty: --password-stdin < /dev/null',
	});
}
