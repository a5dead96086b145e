/** What the server for bounces makes of an address and of a mail: the answer, and the line that says so. */
import type { Readable } from 'node:stream';
import type { SMTPServerAddress, SMTPServerDataStream } from 'smtp-server';
import type { Clock } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { Ingested, ReturnedMail } from './ingest.js';
import { type Answered, failureLine, mailLine, type RecipientKind } from './listener-log.js';
import type { Verp } from './verp.js';

/** What an answer is made of. */
export interface Intake {
	/** Return paths by the settings of this moment; asked for each recipient. */
	verp(): Promise<Verp | null>;
	/** Resolves when it is durable; rejects when the database fails. */
	ingest(mail: ReturnedMail): Promise<Ingested>;
	clock: Clock;
	/** Told of each mail, of each refusal and of what failed, as one object; no addresses. */
	log: (line: object) => void;
}

/** Nothing behind that is ever read. */
const keptBytes = 4 * 1024 * 1024;

/** An answer other than yes; `recipient`: whom it refuses, null where the mail or the connection is meant. */
class Refusal extends Error {
	readonly responseCode: number;
	readonly recipient: RecipientKind | null;
	constructor(code: number, text: string, recipient: RecipientKind | null) {
		super(text);
		this.responseCode = code;
		this.recipient = recipient;
	}
}

/** A refusal with this code and text. */
export function reply(code: number, text: string, recipient: RecipientKind | null = null): Refusal {
	return new Refusal(code, text, recipient);
}

/** Before a mail has come: tells why it is not taken. An error that is no refusal is ours, and passes. */
export function refuse({ clock, log }: Intake, { error, ip }: { error: unknown; ip: string }): Refusal {
	const refusal = error instanceof Refusal ? error : failure({ clock, log }, { message: null, error });
	const verdict = refusal === error ? 'refused' : 'failed';
	const { recipient, responseCode: status } = refusal;
	log(mailLine(clock, { verdict, recipient, status, message: null, began: null, bytes: 0, ip }));
	return refusal;
}

/** The message whose return path an address is; rejects with what is answered for any other. */
export async function checkRecipient({ verp }: Intake, { address }: SMTPServerAddress): Promise<Uuid> {
	const paths = await verp();
	if (paths === null || !paths.isOurDomain(address)) throw reply(550, '5.7.1 Relaying denied', 'elsewhere');
	const message = paths.messageOf(address);
	if (message === null) throw reply(550, '5.1.1 No such return path', 'unsigned');
	return message;
}

/** Reads a mail, has it recorded and tells what became of it. Null: it is recorded. */
export async function take(
	intake: Intake,
	stream: SMTPServerDataStream,
	{ message, ip }: { message: Uuid; ip: string },
): Promise<Refusal | null> {
	const { clock, log } = intake;
	const began = clock.now();
	const { verdict, refusal } = await taken(intake, stream, message);
	// Too much: the library refuses it, whatever is answered here.
	const status = stream.sizeExceeded ? 552 : (refusal?.responseCode ?? 250);
	const mail = { message, began, bytes: stream.byteLength, ip };
	log(mailLine(clock, { verdict, recipient: 'return_path', status, ...mail }));
	return refusal;
}

async function taken(
	{ ingest, clock, log }: Intake,
	stream: SMTPServerDataStream,
	message: Uuid,
): Promise<{ verdict: Answered['verdict']; refusal: Refusal | null }> {
	try {
		const bytes = await beginOf(stream);
		if (stream.sizeExceeded) return { verdict: 'refused', refusal: null };
		const verdict = await ingest({ bytes, returnPath: message });
		const later = () => reply(451, '4.3.0 The message is being sent, try later');
		return { verdict, refusal: verdict === 'in_flight' ? later() : null };
	} catch (error) {
		return { verdict: 'failed', refusal: failure({ clock, log }, { message, error }) };
	}
}

/** The sender keeps the mail and comes again; the operator is told. */
function failure(
	{ clock, log }: Pick<Intake, 'clock' | 'log'>,
	{ message, error }: { message: Uuid | null; error: unknown },
): Refusal {
	log(failureLine(clock, { message, error }));
	return reply(451, '4.3.0 Cannot record it now, try later');
}

/** All is read, as SMTP wants it; a part of it is kept. */
async function beginOf(stream: Readable): Promise<Buffer> {
	const kept: Buffer[] = [];
	let length = 0;
	for await (const piece of stream) {
		const bytes = Buffer.from(piece);
		if (length < keptBytes) kept.push(bytes);
		length += bytes.length;
	}
	return Buffer.concat(kept).subarray(0, keptBytes);
}
