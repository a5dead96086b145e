import { workerData } from 'node:worker_threads';
import { compileContent } from '../content/compile.js';
import { createVerp } from '../delivery/bounces/verp.js';
import { type ComposerOptions, type MailSource, toMail } from '../delivery/composer.js';
import { signMessageHere } from '../delivery/dkim/sign.js';
import type { Mail } from '../delivery/smtp/transaction.js';
import { keyringOf } from '../delivery/tracking/tokens.js';
import type { Leased } from '../store/queue.js';
import { answerQuestions } from './answering.js';
import type { ComposedAhead, ComposingJob, ComposingOrder } from './composing.js';

const { settings, slabs } = workerData as ComposingOrder;
const { publicUrl, keys, bounceAddress } = settings;
const verp = bounceAddress === null ? null : createVerp(bounceAddress, keys);
const returnPath: ComposerOptions['returnPath'] =
	verp === null ? undefined : ({ message }) => verp.addressFor(message);
const shared = {
	publicUrl,
	keyring: keyringOf(keys),
	...(returnPath && { returnPath }),
};

type Compose = (message: Leased, memory: Buffer) => Mail;

async function composerOf({ submission, read, keys: signing }: MailSource): Promise<Compose> {
	const compiled = await compileContent(submission.content, async () => {
		if (read === null) throw new Error('the HTML was not read');
		return read;
	});
	if (signing.length === 0)
		return (message, memory) => toMail(shared, compiled, { submission, message, memory });
	return (message) => {
		const mail = toMail(shared, compiled, { submission, message });
		return { ...mail, bytes: signMessageHere(mail.bytes, signing) };
	};
}

let composer: Promise<Compose> | null = null;

async function composeJob({ slab, messages, source }: ComposingJob): Promise<ComposedAhead[]> {
	if (source !== undefined) composer = composerOf(source);
	const compose = await composer?.catch(() => null);
	let room = Buffer.from(slabs[slab] ?? new SharedArrayBuffer(0));
	return messages.map((message): ComposedAhead => {
		const mail = compose == null ? null : composed(compose, message, room);
		if (mail === null || mail.bytes.length > room.length) return null;
		const { from, to, copies, bytes } = mail;
		if (bytes.buffer !== room.buffer) room.set(bytes);
		room = room.subarray(bytes.length);
		return { from, to, copies, length: bytes.length };
	});
}

/** Returns null on failure: the main thread then composes the mail itself and gets the error. */
function composed(compose: Compose, message: Leased, memory: Buffer): Mail | null {
	try {
		return compose(message, memory);
	} catch {
		return null;
	}
}

let last: Promise<unknown> = Promise.resolve();
answerQuestions({
	compose: (job: ComposingJob) => {
		const mails = last.then(() => composeJob(job));
		last = mails;
		return mails;
	},
});
