import { setMaxListeners } from 'node:events';
import type { PeerCertificate } from 'node:tls';
import type { Reply } from '../../engine/rules/outcomes.js';
import { classify, localReply } from '../reply.js';
import { type Opened, type OpeningFailure, openSession, type Session, type TraceEntry } from './session.js';
import { type SmtpSettings, type SmtpTimeouts, standardTimeouts } from './settings.js';
import { broken, type Conversation, type Mail } from './transaction.js';

export interface Verified {
	failure: OpeningFailure | null;
	certificate: PeerCertificate | null;
	isSenderTried: boolean;
}

export interface PoolOptions {
	settings: SmtpSettings;
	connections?: number;
	maxMessages?: number;
	/** Milliseconds until an idle connection is closed; 30,000 by default, less than the 5 min that servers wait. */
	idleMs?: number;
	timeouts?: Partial<SmtpTimeouts>;
	onTrace?: (entry: TraceEntry) => void;
	onWait?: (() => { end(): void }) | undefined;
}

export const usualConnections = 5;

const closedReply = localReply('mail', 'the connection was closed');
const cutReply = localReply('connect', 'mailctl closed the connection');

const noMail: Mail = { from: '', to: '', copies: [], bytes: Buffer.alloc(0) };

type Borrowed = { kind: 'session'; session: Session } | { kind: 'failed'; reply: Reply };

/** Connects at the first mail. Until `close`, an idle connection keeps the process alive for `idleMs`. */
export class SmtpPool {
	readonly #options: PoolOptions;
	readonly #idle = new Map<Session, NodeJS.Timeout>();
	readonly #sessions = new Set<Session>();
	readonly #waiting: ((borrowed: Borrowed | 'again') => void)[] = [];
	readonly #halt = new AbortController();
	readonly #cut = new AbortController();
	#opening = 0;
	/** How many connections the server allows. `#openOne` lowers it if the server refuses one while others are open. */
	#limit: number;

	constructor(options: PoolOptions) {
		this.#options = options;
		setMaxListeners(0, this.#cut.signal, this.#halt.signal);
		this.#limit = options.connections ?? usualConnections;
	}

	send(mail: Mail): Promise<Conversation> {
		return this.#options.onWait === undefined ? this.#send(mail) : this.#waited(this.#send(mail));
	}

	async #waited<T>(work: Promise<T>): Promise<T> {
		const wait = this.#options.onWait?.();
		return work.finally(() => wait?.end());
	}

	async #send(mail: Mail): Promise<Conversation> {
		for (;;) {
			const borrowed = this.#findOpen() ?? (await (this.#mayOpen ? this.#openOne() : this.#wait()));
			if (borrowed === 'again') continue;
			if (borrowed.kind === 'failed') return broken(borrowed.reply);
			const { session } = borrowed;
			const wasUsed = session.tried > 0;
			const conversation = await this.#sendOn(session, mail);
			this.#giveBack(session);
			// The connection ended before the server replied about this mail, so use another connection.
			if (conversation === null) continue;
			return wasUsed && isStale(conversation) ? this.#sendAfresh(mail) : conversation;
		}
	}

	async verify(sender: string | null): Promise<Verified> {
		const opened = await this.#waited(this.#open());
		if (opened.kind === 'failed') return { failure: opened, certificate: null, isSenderTried: false };
		const { session } = opened;
		const { certificate } = session;
		const failure =
			sender === null
				? null
				: senderFailure(await this.#waited(session.send({ ...noMail, from: sender, to: sender }, true)));
		session.quit();
		return { failure, certificate, isSenderTried: sender !== null };
	}

	/** Busy connections stay open until they have been idle for `idleMs`. */
	close(): void {
		for (const session of [...this.#idle.keys()]) this.#retire(session);
	}

	halt(): void {
		this.#halt.abort();
	}

	abort(): void {
		this.#halt.abort();
		this.#cut.abort();
		for (const waiter of this.#waiting.splice(0)) waiter({ kind: 'failed', reply: cutReply });
	}

	/** Sends on a new connection, because other idle connections may be stale too. */
	async #sendAfresh(mail: Mail): Promise<Conversation> {
		const opened = await this.#open();
		if (opened.kind === 'failed') return broken(opened.reply);
		const conversation = await this.#sendOn(opened.session, mail);
		this.#giveBack(opened.session);
		return conversation ?? broken(closedReply);
	}

	#sendOn(session: Session, mail: Mail): Promise<Conversation | null> {
		const sending = session.send(mail);
		if (this.#mayTakeMore(session)) this.#wake();
		return sending;
	}

	#findOpen(): Borrowed | null {
		const session = this.#takeIdle() ?? (this.#mayOpen ? null : this.#findRoom());
		return session && { kind: 'session', session };
	}

	get #mayOpen(): boolean {
		return this.#sessions.size + this.#opening < this.#limit;
	}

	async #openOne(): Promise<Borrowed | 'again'> {
		const opened = await this.#open();
		if (opened.kind === 'open') return { kind: 'session', session: opened.session };
		if (this.#sessions.size === 0)
			return this.#opening === 0 ? { kind: 'failed', reply: opened.reply } : this.#wait();
		// The server allows no further connection, so share the open ones.
		this.#limit = this.#sessions.size;
		return 'again';
	}

	#wait(): Promise<Borrowed | 'again'> {
		return new Promise((resolve) => this.#waiting.push(resolve));
	}

	/** Fails waiting mails with the same reply, because they would meet the same fault. */
	#passOnFailure(reply: Reply): void {
		if (this.#sessions.size > 0 || this.#opening > 0) return;
		this.#limit = this.#options.connections ?? usualConnections;
		for (const waiter of this.#waiting.splice(0)) waiter({ kind: 'failed', reply });
	}

	#takeIdle(): Session | null {
		for (const [session, timer] of this.#idle) {
			clearTimeout(timer);
			this.#idle.delete(session);
			if (session.isOpen) return session;
			this.#sessions.delete(session);
		}
		return null;
	}

	#findRoom(): Session | null {
		for (const session of this.#sessions) if (this.#mayTakeMore(session)) return session;
		return null;
	}

	#mayTakeMore(session: Session): boolean {
		return session.hasRoom && session.tried < this.#maxMessages;
	}

	get #maxMessages(): number {
		return this.#options.maxMessages ?? 1_000;
	}

	async #open(): Promise<Opened> {
		if (this.#halt.signal.aborted) return { kind: 'failed', reply: cutReply, remedy: null };
		this.#opening += 1;
		const opened = await openSession({
			settings: this.#options.settings,
			timeouts: { ...standardTimeouts, ...this.#options.timeouts },
			onTrace: this.#options.onTrace,
			signal: this.#cut.signal,
			opening: this.#halt.signal,
			onEnd: () => this.#dropEnded(),
		});
		this.#opening -= 1;
		if (opened.kind === 'open') this.#sessions.add(opened.session);
		else this.#passOnFailure(opened.reply);
		return opened;
	}

	#giveBack(session: Session): void {
		// Two messages may end in the same turn of the event loop. The first has already made the connection idle.
		if (this.#idle.has(session)) return;
		if (!session.isOpen) this.#dropEnded();
		else if (session.size > 0) {
			if (this.#mayTakeMore(session)) this.#wake();
		} else if (session.tried >= this.#maxMessages) this.#retire(session);
		else {
			const timer = setTimeout(() => this.#retire(session), this.#options.idleMs ?? 30_000);
			this.#idle.set(session, timer);
			this.#wake();
		}
	}

	#retire(session: Session): void {
		clearTimeout(this.#idle.get(session));
		this.#idle.delete(session);
		this.#sessions.delete(session);
		session.quit();
		this.#limit = Math.min(this.#limit + 1, this.#options.connections ?? usualConnections);
		this.#wakeAll();
	}

	#dropEnded(): void {
		const ended = [...this.#sessions].filter((session) => !session.isOpen);
		for (const session of ended) {
			clearTimeout(this.#idle.get(session));
			this.#idle.delete(session);
			this.#sessions.delete(session);
		}
		// Do not wake mails after a failed attempt to connect, because they would repeat the attempt forever.
		if (ended.length > 0) this.#wakeAll();
	}

	#wake(): void {
		this.#waiting.shift()?.('again');
	}

	#wakeAll(): void {
		for (const waiter of this.#waiting.splice(0)) waiter('again');
	}
}

/** Null if the server accepts the sender. A permanent reply may ask for a login (RFC 4954 s.6) or refuse the sender. */
function senderFailure(conversation: Conversation | null): OpeningFailure | null {
	if (conversation === null) return { reply: closedReply, remedy: null };
	const { kind, reply } = conversation;
	if (kind === 'accepted') return null;
	const { verdict } = classify(conversation);
	const remedy = verdict === 'infrastructure' ? 'login' : verdict === 'sender' ? 'sender' : null;
	return { reply, remedy };
}

/** True if the connection probably reached the server's limit of idle time or of messages. */
function isStale({ kind, reply }: Conversation): boolean {
	if (reply.phase !== 'mail' && reply.phase !== 'rcpt' && reply.phase !== 'data') return false;
	return kind === 'broken' || (kind === 'refused' && reply.code === 421);
}
