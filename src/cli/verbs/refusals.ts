import { maxAddressLength } from '../../api/address.js';
import type { MessageScope } from '../../api/capabilities.js';
import { ApiError, type FieldErrors, listFieldErrors } from '../../api/errors.js';
import { causeOf, isHeldReason, type PauseCause, pauseSentence } from '../../api/pauses.js';
import { shownUrl, withoutSecrets } from '../../api/quote.js';
import { unknownVariableOf } from '../../api/refusals.js';
import { type Hint, joinHints, mailctl } from '../frame/command-line.js';
import type { SmtpTest } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isMachine } from '../frame/globals.js';
import { type AddressForm, withAddressFault } from './address-faults.js';

export type Refused = ReturnType<typeof listFieldErrors>[number];

export interface Refusal {
	input: object;
	/** Returns a hint for a field error, or undefined for the common hint of the error code. */
	hint?: HintOf;
	exit?: ExitCode;
}

const maxQuoted = 80;
const secrets = new Set(['password', 'smtp_password', 'smtp_url']);

const addresses: ReadonlyMap<string, AddressForm> = new Map([
	['email', 'address'],
	['to', 'address'],
	['bounce_address', 'address'],
	...(['from', 'reply_to', 'cc', 'bcc'] as const).map((key) => [key, 'mailbox'] as const),
]);

/** Turns an `invalid` error into a `CliError` with the refused values, a hint and the exit code `exit` (default 5). */
export async function explained<T>(work: Promise<T>, refused: Refusal): Promise<T> {
	try {
		return await work;
	} catch (error) {
		if (error instanceof ApiError && error.code === 'invalid' && error.fields !== null)
			throw explainedError(error, error.fields, refused);
		throw error;
	}
}

function explainedError(
	error: ApiError,
	fields: FieldErrors,
	{ input, hint, exit = exits.refused }: Refusal,
): CliError {
	const complaints = listFieldErrors(fields);
	const details = complaints.map((one) => ({ ...one, message: withValue(one, input) }));
	const found = complaints
		.map((one) => hint?.(one) ?? hints.get(one.code)?.(one, addressAt(input, one.path)))
		.find((one) => one !== undefined);
	const [first] = details;
	const message = first === undefined ? error.message : `${first.path}: ${first.message}`;
	return new CliError(error.code, exit, message, {
		details,
		cause: error,
		...(found !== undefined && { hint: found }),
	});
}

type HintOf = (refused: Refused) => Hint | undefined;

type CommonHint = (refused: Refused, address: string) => Hint | undefined;

/** Hints by error code. `address` is the refused address, or `ADDRESS` if unknown. */
const hints = new Map<string, CommonHint>(
	Object.entries<CommonHint>({
		not_verified: (_, address) => mailctl('senders', 'add', address),
		public_url_required: () => [
			mailctl('engine', 'settings', 'set', 'public_url', 'https://HOST'),
			'; with --transactional, mails to a list need no public URL',
		],
		private_target: () => [
			'to allow private addresses, on the machine with the database: ',
			mailctl('engine', 'settings', 'set', 'allow_private_webhooks', 'true'),
		],
		suppressed: (_, address) => [
			mailctl('suppressions', 'remove', address),
			', if the person wants mail again',
		],
		erased: (_, address) => [
			'to allow the address again: ',
			mailctl('subscribers', 'erase', address, '--lift'),
		],
		unknown_variable: ({ message }) => {
			const variable = unknownVariableOf(message);
			if (variable === null) return undefined;
			return mailctl('fields', 'create', '--variable', variable, '--name', 'NAME');
		},
	}),
);

function withValue({ path, code, message }: Refused, input: object): string {
	const keys = path.split('.');
	const value = secrets.has(path) ? undefined : valueAt(input, keys);
	const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
	if (text === '') return message;
	const form = addresses.get(keys[0] ?? '');
	const told = form === undefined || code !== 'invalid' ? message : withAddressFault(message, text, form);
	const most = form === undefined ? maxQuoted : maxAddressLength;
	return text.length > most || message.includes(text)
		? told
		: `${told} (${keys.at(-1)?.endsWith('url') ? shownUrl(text) : withoutSecrets(text)})`;
}

function addressAt(input: object, path: string): string {
	const value = valueAt(input, path.split('.'));
	const text = typeof value === 'string' ? value.slice(value.lastIndexOf('<') + 1).replace(/>$/, '') : '';
	return text.includes('@') && text.length <= maxAddressLength ? text : 'ADDRESS';
}

function valueAt(input: unknown, [key, ...rest]: readonly string[]): unknown {
	if (key === undefined) return input;
	if (typeof input !== 'object' || input === null) return undefined;
	const inner: unknown = Object.getOwnPropertyDescriptor(input, key)?.value;
	return typeof inner === 'string' ? inner : valueAt(inner, rest);
}

export const doNotRepeat = 'accepted and queued, so do not repeat the command';

interface Paused {
	reason: string | null;
	hint: Hint;
	hasAccepted: boolean;
}

export async function queuePaused(cx: CommandContext, { reason, hint, hasAccepted }: Paused) {
	const cause = reason === null ? 'server' : causeOf(reason);
	const why = pauseSentence(reason);
	const message = hasAccepted ? `${doNotRepeat}: ${why}` : why;
	const hints: Partial<Record<PauseCause, Hint>> = {
		hand: ['nothing is lost: ', resumeQueue],
		restore: ['nothing is lost: ', resumeQueue],
		sender: ['nothing is lost: allow the sender at the mail server, then run ', resumeQueue, ' and ', drain],
		login: loginRemedy,
	};
	const known = hints[cause];
	const here = known && (await onItsMachine(cx, known));
	return new CliError(hasAccepted ? 'accepted_and_queued' : 'queue_paused', exits.queued, message, {
		hint: here === undefined ? hint : cause === 'login' ? joinHints([here, hint]) : here,
		retryable: !hasAccepted,
	});
}

const resumeQueue = mailctl('engine', 'queue', 'resume');
const drain = mailctl('worker', '--drain');

async function onItsMachine(cx: CommandContext, hint: Hint): Promise<Hint> {
	const { local } = await cx.connection();
	return local !== null ? hint : [hint, ', on the machine with the database'];
}

export function senderless(cx: CommandContext, sender: Hint = mailctl('worker')): Promise<Hint> {
	return onItsMachine(cx, ['no worker is running: ', sender]);
}

/** Tells the user why messages wait. `sender`: the command to suggest for queued messages; null suggests none. */
export async function sayWhatHolds(
	cx: CommandContext,
	scope: MessageScope,
	sender: Hint | null = mailctl('worker'),
): Promise<void> {
	const { messages } = (await (await cx.api()).capabilities()).ext;
	if (messages === undefined || isMachine(cx.out.format)) return;
	// Ignore errors: this is only a hint, and the token may lack the scope for the request.
	const progress = await messages.progress(scope, { signal: cx.signal }).catch(() => null);
	if (progress === null) return;
	const { paused, has_worker } = progress;
	const isQueued = (progress.messages.queued ?? 0) > 0;
	if (isHeldReason(paused)) return cx.hint(await onItsMachine(cx, ['the queue is paused: ', resumeQueue]));
	if (paused !== null) await cx.warn(pauseSentence(paused));
	if (has_worker === false && sender !== null)
		await cx.hint(await senderless(cx, isQueued ? sender : undefined));
}

export function acceptance({ host, port, user, sender, ehlo_name }: SmtpTest): string {
	const said = `(EHLO ${ehlo_name})`;
	if (sender !== null) return `${host}:${port} accepts mail from ${sender} ${said}`;
	const login = user === null ? 'answers' : `accepts the login of ${user}`;
	return `${host}:${port} ${login} ${said}; no sender was tried, because there is none`;
}

export function smtpRefusal({ host, port, sender, reply, remedy }: SmtpTest): string {
	const said = reply?.replace(` ${host}:${port}:`, ':') ?? 'no answer';
	return `${host}:${port}${remedy === 'sender' ? ` refuses mail from ${sender}` : ''}: ${said}`;
}

export const loginRemedy: Hint = [
	mailctl('engine', 'init', '--smtp-password-file', 'FILE'),
	' sets the password',
];

const setting = (name: string, value: string) => mailctl('engine', 'settings', 'set', name, value);

const remedies: Readonly<Record<NonNullable<SmtpTest['remedy']>, Hint>> = {
	tls_port: setting('smtp_url', 'smtps://USER@HOST:465'),
	smtp_ca: [setting('smtp_ca', '-'), ' < ca.pem'],
	smtp_url: setting('smtp_url', 'smtp://USER@HOST:587'),
	smtp_ehlo_name: setting('smtp_ehlo_name', 'mail.example.com'),
	login: loginRemedy,
	sender: [
		'allow the sender at the mail server, or use another sender: ',
		mailctl('senders', 'add', 'ADDRESS'),
	],
};

export function remedyFor(remedy: NonNullable<SmtpTest['remedy']>): Hint {
	return remedies[remedy];
}
