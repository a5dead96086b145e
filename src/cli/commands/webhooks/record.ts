import type { WebhookInput } from '../../../api/inputs.js';
import { withoutPassword, withoutSecrets } from '../../../api/quote.js';
import type { TestResult, Webhook } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type Column, type Columns, column } from '../../render/columns.js';
import { isRecordId, missing, orNull } from '../../verbs/resolve.js';

export const hookArg = {
	name: 'id',
	summary: 'the id of a webhook',
	of: 'webhook',
	ask: 'Which webhook:',
} as const;

export const hookColumns: Columns<Webhook> = [
	column('id', 'ID', { align: 'right' }),
	column('type', 'TYPE'),
	column('url', 'URL'),
	column('is_auth_enabled', 'AUTH'),
	column('login', 'LOGIN', { wide: true }),
	column('date_created', 'CREATED', { time: 'text', wide: true }),
];

export async function findWebhook(cx: CommandContext, text: string): Promise<Webhook> {
	const { webhooks } = await cx.api();
	const hook = await orNull(webhooks.get(idOf(text), { signal: cx.signal }));
	if (hook === null) throw missing('webhook', text, mailctl('webhooks', 'list'));
	return hook;
}

export function idOf(text: string): number {
	if (isRecordId(text)) return Number(text);
	throw new UsageError(`"${text}" is not an id of a webhook`, { hint: mailctl('webhooks', 'list') });
}

export function stateColumn(stopped: ReadonlySet<number>): Column<Webhook> {
	const value = ({ id }: Webhook) => (stopped.has(id) ? 'stopped' : 'active');
	return { key: 'state', header: 'STATE', wide: true, value };
}

/** The password becomes null, which the type of the API does not allow. */
export function mask(cx: CommandContext, hook: Webhook): Webhook {
	return { ...hook, url: maskUrl(cx, hook.url), password: null } as object as Webhook;
}

export function maskInput(cx: CommandContext, { url, ...input }: Partial<WebhookInput>): object {
	return {
		...(url !== undefined && { url: maskUrl(cx, url) }),
		...input,
		...('password' in input && { password: null }),
	};
}

/** Always masks the password. Shows other secrets of the URL only to programs, which identify a webhook by its URL. */
function maskUrl({ out }: CommandContext, url: string): string {
	const isForPeople = ['table', 'wide', 'markdown'].includes(out.format);
	return isForPeople ? withoutSecrets(url) : withoutPassword(url);
}

/** Another service may omit any of these values. */
export function sentenceOf({ result, status_code, error, duration_ms }: Partial<TestResult>): string {
	const code = status_code == null ? '' : ` with ${status_code}`;
	const time = typeof duration_ms === 'number' ? ` after ${duration_ms} ms` : '';
	if (result === true) return `the target answered${code}${time}`;
	if (result !== false) return 'sent the test notification; this service does not say whether it arrived';
	const why = typeof error === 'string' && error !== '' ? `: ${error}` : '';
	return code === '' ? `the target was not reached${time}${why}` : `the target refused${code}${time}${why}`;
}
