import { domainOf, type EmailKey, emailKey } from '../api/address.js';
import { microsPerMs } from '../api/datetime.js';
import type { Envelope } from '../api/messages.js';
import type { Uuid } from '../api/records.js';
import { withOwn } from '../api/variables.js';
import { ByteCache, type ContentCache } from '../content/cache.js';
import { bytesOf, type CompiledContent } from '../content/compile.js';
import { type ContentSize, contentSize, isSurelyWithin } from '../content/message-size.js';
import type { ReadHtml } from '../content/read-html.js';
import type { Recipient } from '../content/types.js';
import type { StoredSubmission } from '../store/campaigns.js';
import type { StoredKey } from '../store/maintenance.js';
import type { Queue, Reads } from '../store/operations.js';
import type { Leased } from '../store/queue.js';
import { type KeysFor, type SigningKey, signMessage } from './dkim/sign.js';
import { EncodedFiles } from './files.js';
import { type Conversation, type Mail, unsendable } from './smtp/transaction.js';
import { type LinkOptions, messageLinks, trackingOf, usedLinks } from './tracking/tokens.js';

export interface ComposingSettings {
	publicUrl: string | null;
	keys: readonly StoredKey[];
	bounceAddress: string | null;
}

export interface MailSource {
	submission: StoredSubmission;
	read: ReadHtml | null;
	keys: readonly SigningKey[];
}

export interface LentMail {
	mail: Mail;
	release(): void;
}

/** Threads that compose mails before the courier requests them. */
export interface Ahead {
	expect(source: MailSource, messages: readonly Leased[]): void;
	/** Returns the mail only once, and drops all mails expected before it. Null if no thread could compose the mail. */
	take(message: Uuid): LentMail | Promise<LentMail | null> | null;
	keysFor: KeysFor;
}

/** For fewer messages of one submission, a thread costs more time than it saves. */
const leastTogether = 10;

export interface ComposerOptions extends LinkOptions {
	reads: Pick<Reads, 'getSubmission' | 'getAttachment'>;
	contents: ContentCache;
	files?: EncodedFiles;
	/** MAIL FROM. The default is the sender's address. */
	returnPath?: (message: Leased, submission: StoredSubmission) => string;
	queue?: Pick<Queue, 'beginComposing' | 'endComposing'>;
	keysFor?: KeysFor;
	ahead?: Ahead;
}

type Composed =
	| { kind: 'mail'; mail: Mail; sender: string; release?: LentMail['release'] }
	| { kind: 'unsendable'; conversation: Conversation };

/** Composing a larger message may crash the process, so `#withCare` composes it alone and notes it in the store. */
const largeBytes = 1024 * 1024;

export class Composer {
	readonly #options: ComposerOptions;
	readonly #submissions: ReturnType<typeof createSubmissions>;
	readonly #files: EncodedFiles;
	readonly #sizes = new WeakMap<StoredSubmission, ContentSize>();
	/** `compose` removes its message, so that `#composeAhead` does not pass this message to a thread. */
	readonly #expected = new Set<Uuid>();
	#source: MailSource | null = null;
	#careful: Promise<unknown> = Promise.resolve();

	constructor(options: ComposerOptions) {
		this.#options = options;
		this.#submissions = createSubmissions(options.reads);
		this.#files = options.files ?? new EncodedFiles(options.reads);
	}

	/** Returns the mail, or why it can never be composed. Rejects only if the store fails. */
	async compose(message: Leased): Promise<Composed> {
		this.#expected.delete(message.message);
		// Do not await values that are ready: each await costs time (docs/measurements.md, Sending).
		const taken = this.#options.ahead?.take(message.message) ?? null;
		const lent = taken instanceof Promise ? await taken : taken;
		const known = this.#submissions.get(message.submission);
		const submission = known instanceof Promise ? await known : known;
		if (lent !== null)
			return {
				kind: 'mail',
				...lent,
				sender: submission === null ? '' : addressOf(submission.envelope.from),
			};
		if (submission === null) return refusal('its submission no longer exists');
		if (submission.is_dropped) return refusal('keep_bodies has deleted its text');
		if (this.#isOrdinary(submission, message)) return this.#compose(submission, message);
		return this.#withCare(message, () => this.#compose(submission, message));
	}

	expect(messages: readonly Leased[]): void {
		const { ahead } = this.#options;
		if (ahead === undefined) return;
		for (const { message } of messages) this.#expected.add(message);
		this.#composeAhead(ahead, messages)
			// Ignore the error, because `compose` meets and reports it later.
			.catch(() => undefined)
			.finally(() => {
				for (const { message } of messages) this.#expected.delete(message);
			});
	}

	async #composeAhead(ahead: Ahead, messages: readonly Leased[]): Promise<void> {
		for (let first = 0, end = 0; first < messages.length; first = end) {
			const message = messages[first];
			if (message === undefined) return;
			const isNext = ({ submission }: Leased, at: number) => at > first && submission !== message.submission;
			const after = messages.findIndex(isNext);
			end = after === -1 ? messages.length : after;
			const source = end - first < leastTogether ? null : await this.#sourceOf(ahead, message);
			if (source === null) continue;
			const together = messages
				.slice(first, end)
				.filter((each) => this.#expected.has(each.message) && this.#isOrdinary(source.submission, each));
			if (together.length >= leastTogether) ahead.expect(source, together);
		}
	}

	/**
	 * Returns null for mails with files. Also returns null without HTML and signature, because composing such a mail
	 * takes less time than a call to a thread.
	 */
	async #sourceOf(ahead: Ahead, { submission: id }: Leased): Promise<MailSource | null> {
		const submission = await this.#submissions.get(id);
		const { attachments = [] } = submission?.content ?? {};
		if (submission === null || submission.is_dropped || attachments.length > 0) return null;
		const { read } = await this.#options.contents.get(submission.content_sha256, submission.content);
		const keys = await ahead.keysFor(addressOf(submission.envelope.from));
		if (keys.length === 0 && read === null) return null;
		const last = this.#source;
		if (last?.submission !== submission || last.read !== read || last.keys !== keys)
			this.#source = { submission, read, keys };
		return this.#source;
	}

	#isOrdinary(submission: StoredSubmission, message: Leased): boolean {
		return !message.is_suspect && this.#isSmall(submission, message);
	}

	#isSmall(submission: StoredSubmission, { variables }: Leased): boolean {
		const size = this.#sizes.get(submission) ?? contentSize(submission.content);
		this.#sizes.set(submission, size);
		return isSurelyWithin(largeBytes, size, variables);
	}

	/** Composes one mail at a time. The store records it first, so that the next run knows what caused a crash. */
	#withCare({ message, fence }: Leased, work: () => Promise<Composed>): Promise<Composed> {
		const { queue } = this.#options;
		const turn = this.#careful.then(async () => {
			await queue?.beginComposing({ message, fence });
			const composed = await work();
			await queue?.endComposing({ message, fence });
			return composed;
		});
		this.#careful = turn.catch(() => undefined);
		return turn;
	}

	async #compose(submission: StoredSubmission, message: Leased): Promise<Composed> {
		const { attachments = [] } = submission.content;
		const files = attachments.length === 0 ? noFiles : await this.#files.get(attachments);
		let mail: Mail;
		try {
			const compiled = await this.#options.contents.get(submission.content_sha256, submission.content);
			mail = toMail(this.#options, compiled, { submission, message, files });
		} catch (cause) {
			// The content would fail on every attempt, so fail this message instead of stopping the run.
			const why = cause instanceof Error ? cause.message : String(cause);
			return refusal(`the content cannot be composed: ${why}`);
		}
		const sender = addressOf(submission.envelope.from);
		// Sign last, because any later change would break the signature.
		const keys = this.#options.keysFor?.(sender) ?? [];
		const known = keys instanceof Promise ? await keys : keys;
		if (known.length === 0) return { kind: 'mail', mail, sender };
		return {
			kind: 'mail',
			mail: { ...mail, bytes: await signMessage(mail.bytes, known, mail.rest) },
			sender,
		};
	}
}

const noFiles: ReadonlyMap<string, Buffer> = new Map();

export function addressOf(mailbox: string): string {
	const text = mailbox.trim();
	return text.endsWith('>') ? text.slice(text.lastIndexOf('<') + 1, -1) : text;
}

/** The id is the same on every attempt, so that receivers recognize a duplicate. */
export function messageIdOf(message: Uuid, from: string): string {
	return `${message}@${domainOf(from)}`;
}

interface MailParts {
	submission: StoredSubmission;
	message: Leased;
	files?: ReadonlyMap<string, Buffer>;
	memory?: Buffer;
}

export function toMail(
	options: LinkOptions & Pick<ComposerOptions, 'returnPath'>,
	compiled: CompiledContent,
	{ submission, message, files = noFiles, memory }: MailParts,
): Mail {
	const envelope = withoutCopies(submission.envelope, message.stopped_copies);
	const from = addressOf(envelope.from);
	const links = messageLinks(options, message.message);
	const isBulk = submission.type === 'BULK';
	const references = isBulk ? ['unsubscribe_url', ...compiled.variables] : compiled.variables;
	const pages = links === null ? {} : usedLinks(links, references);
	const recipient: Recipient = {
		to: message.to,
		messageId: messageIdOf(message.message, from),
		dateMs: Math.floor(message.created_at / microsPerMs),
		variables: withOwn(pages, message.variables),
		tracking: isTracked(submission) ? links && trackingOf(links, compiled.links) : null,
		listUnsubscribeUrl: isBulk ? (pages.unsubscribe_url ?? null) : null,
	};
	const bytes = compiled.join(envelope, recipient, memory);
	const rest = compiled.rest(files, recipient);
	const to = addressOf(message.to);
	return {
		from: options.returnPath?.(message, submission) ?? from,
		to,
		copies: copiesOf(envelope, to),
		bytes,
		...(rest.length > 0 && { rest }),
	};
}

function isTracked({ content, tracking }: StoredSubmission): boolean {
	return content.html !== null && tracking !== 'off';
}

function copiesOf({ cc, bcc }: Envelope, to: string): string[] {
	if (cc.length + bcc.length === 0) return [];
	const copies = new Set([...cc, ...bcc].map(addressOf));
	copies.delete(to);
	return [...copies];
}

/** Removes copies to addresses that had a hard bounce or complaint after the message was accepted. */
function withoutCopies(envelope: Envelope, stopped: readonly EmailKey[] = []): Envelope {
	if (stopped.length === 0) return envelope;
	const mayGo = (text: string) => !stopped.includes(emailKey(addressOf(text)));
	return { ...envelope, cc: envelope.cc.filter(mayGo), bcc: envelope.bcc.filter(mayGo) };
}

function refusal(text: string): Composed {
	return { kind: 'unsendable', conversation: unsendable(text) };
}

const cachedBytes = 8 * 1024 * 1024;
/** The memory that even a small submission takes in the cache. */
const leastBytes = 40 * 1024;

/** Submissions never change, so cached ones stay valid. */
export function createSubmissions(reads: Pick<Reads, 'getSubmission'>) {
	const cache = new ByteCache<StoredSubmission>(cachedBytes);
	const read = async (id: Uuid) => {
		const submission = await reads.getSubmission({ id });
		if (submission === null) return null;
		const request = submission.call === undefined ? '' : JSON.stringify(submission.call.request);
		cache.set(id, submission, Math.max(leastBytes, bytesOf(submission.content) + request.length));
		return submission;
	};
	return { get: (id: Uuid) => cache.get(id) ?? read(id) };
}
