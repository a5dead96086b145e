/** Turns a leased message into the bytes and the envelope that go to the server. */
import { domainToASCII } from 'node:url';
import { type EmailKey, emailKey } from '../api/address.js';
import type { Content, Envelope } from '../api/content.js';
import { microsPerMs } from '../api/datetime.js';
import type { Uuid } from '../api/records.js';
import type { CompiledContent } from '../content/types.js';
import type { Leased } from '../store/queue.js';
import type { Reads } from '../store/store.js';
import type { StoredSubmission } from '../store/submissions.js';
import type { Conversation, Mail } from './conversation.js';
import type { SignMail } from './dkim/signer.js';
import { localReply } from './reply.js';
import { createSubmissions } from './submissions.js';
import {
	type LinkOptions,
	messageLinks,
	recipientVariables,
	trackingOf,
	usedLinks,
} from './tracking/links.js';

/** Compiled contents by the hash of what was written. */
export interface ContentCache {
	get(sha256: string, content: Content): Promise<CompiledContent>;
}

export interface ComposerOptions extends LinkOptions {
	reads: Pick<Reads, 'getSubmission'>;
	contents: ContentCache;
	/** MAIL FROM; the sender's address unless given. */
	returnPath?: (message: Leased, submission: StoredSubmission) => string;
	/** Absent: nothing is signed. */
	sign?: SignMail;
}

export interface Composer {
	/** The mail, or why it can never be one. Rejects only when the store does. */
	compose(
		message: Leased,
	): Promise<{ kind: 'mail'; mail: Mail } | { kind: 'unsendable'; conversation: Conversation }>;
}

/**
 * For one worker, or one look at a message: it remembers submissions it has read. `contents` is shared and outlives it.
 */
export function createComposer(options: ComposerOptions): Composer {
	const submissions = createSubmissions(options.reads);
	return {
		async compose(message) {
			const submission = await submissions.get(message.submission);
			if (submission === null) return unsendable('its submission is gone');
			let mail: Mail;
			try {
				const compiled = await options.contents.get(submission.content_sha256, submission.content);
				mail = toMail(options, compiled, submission, message);
			} catch (cause) {
				// A content that cannot be compiled or joined will not be better tomorrow, and must not stop the others.
				return unsendable(
					`the content cannot be composed: ${cause instanceof Error ? cause.message : String(cause)}`,
				);
			}
			// Last: whatever changes a signed message breaks the signature.
			const bytes = await options.sign?.(mail.bytes, addressOf(submission.envelope.from));
			return { kind: 'mail', mail: bytes === undefined ? mail : { ...mail, bytes } };
		},
	};
}

/** `a@b` of `Name <a@b>` or `a@b`; the text is a checked mailbox, one to a string. */
export function addressOf(mailbox: string): string {
	const text = mailbox.trim();
	return text.endsWith('>') ? text.slice(text.lastIndexOf('<') + 1, -1) : text;
}

/** `uuid@domain of the sender`: the same on every attempt, so that a repeat shows as one. */
export function messageIdOf(message: Uuid, from: string): string {
	const domain = from.slice(from.lastIndexOf('@') + 1);
	return `${message}@${domainToASCII(domain) || domain}`;
}

function toMail(
	options: ComposerOptions,
	compiled: CompiledContent,
	submission: StoredSubmission,
	message: Leased,
): Mail {
	const envelope = withoutCopies(submission.envelope, message.stopped_copies);
	const from = addressOf(envelope.from);
	const links = messageLinks(options, message.message);
	const isBulk = submission.type === 'BULK';
	const pages =
		links === null
			? {}
			: usedLinks(links, isBulk ? ['unsubscribe_url', ...compiled.variables] : compiled.variables);
	const bytes = compiled.join(envelope, {
		to: message.to,
		messageId: messageIdOf(message.message, from),
		dateMs: Math.floor(message.created_at / microsPerMs),
		variables: recipientVariables(pages, message.variables),
		tracking: submission.content.html === null ? null : links && trackingOf(links, compiled.links),
		listUnsubscribeUrl: isBulk ? (pages.unsubscribe_url ?? null) : null,
	});
	const to = addressOf(message.to);
	const copies = new Set([...envelope.cc, ...envelope.bcc].map(addressOf));
	copies.delete(to);
	return { from: options.returnPath?.(message, submission) ?? from, to, copies: [...copies], bytes };
}

/** Whoever bounced hard or complained since the message was accepted is no recipient of it any more. */
function withoutCopies(envelope: Envelope, stopped: readonly EmailKey[] = []): Envelope {
	if (stopped.length === 0) return envelope;
	const mayGo = (text: string) => !stopped.includes(emailKey(addressOf(text)));
	return { ...envelope, cc: envelope.cc.filter(mayGo), bcc: envelope.bcc.filter(mayGo) };
}

function unsendable(text: string): { kind: 'unsendable'; conversation: Conversation } {
	return {
		kind: 'unsendable',
		conversation: { kind: 'unsendable', reply: localReply('mail', text), refusedCopies: [] },
	};
}
