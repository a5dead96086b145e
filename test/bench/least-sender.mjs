// The least that sends a queue as a worker of this design does, in one thread: SQLite with FULL commits, 50 outcomes and
// the next lease in each; sockets, and MAIL, RCPT and DATA behind the body of the mail before. It checks nothing: a reply
// that is not the expected one ends it, no body is searched for dots, and there is no retry, limit, figure, deadline or TLS.
// `node least-sender.mjs PORT CONNECTIONS DATABASE TEMPLATE [KEY]`, as `least.ts` makes them; with a key it signs.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import Database from 'better-sqlite3';
import { mailsOf } from './least-mail.mjs';

const [port, connections, path, templateFile, keyFile] = process.argv.slice(2);
const group = 50;
/** Mails that are being signed or wait for a connection. */
const mostAhead = 16;
const { mailOf, signMail } = mailsOf(
	readFileSync(templateFile, 'latin1'),
	keyFile === undefined ? null : readFileSync(keyFile),
);
const exchange = openQueue();
const sockets = Array.from({ length: Number(connections) }, openConnection);
/** What a connection does that waits for a mail. */
const idle = [];
/** Leased and not composed, signed and not begun, answered and not stored. */
const waiting = [];
const ready = [];
let answered = [];
let underSignature = 0;
let unstored = 0;
lease();

function lease() {
	const messages = exchange(answered, answered.length === 0 ? 2 * group : group);
	unstored += messages.length - answered.length;
	answered = [];
	waiting.push(...messages);
	signAhead();
	for (const begin of idle.splice(0)) begin();
	if (unstored === 0) for (const socket of sockets) socket.end('QUIT\r\n');
}

/** One packet each way a mail: the end of its body with the envelope of the next, its answer with the replies to that. */
function openConnection() {
	let step = 0;
	let mail;
	let next;
	const begin = () => {
		next = take();
		if (next === undefined) idle.push(begin);
		else socket.write(next.envelope);
	};
	const writeBody = () => {
		mail = next;
		next = take();
		socket.write(`${mail.text}.\r\n${next === undefined ? '' : next.envelope}`, 'latin1');
	};
	const end = () => {
		step = 2;
		answered.push(mail.message);
		if (next === undefined) begin();
		if (answered.length === Math.min(group, unstored)) lease();
	};
	const codes = [220, 250, 250, 250, 354, 250];
	const actions = [() => socket.write('EHLO least\r\n'), begin, null, null, writeBody, end];
	const onReply = (code) => {
		if (unstored === 0) return;
		if (code !== codes[step]) throw new Error(`the server said ${code}`);
		const act = actions[step];
		step += 1;
		if (act !== null) act();
	};
	const socket = connect({
		port: Number(port),
		host: '127.0.0.1',
		onread: { buffer: Buffer.alloc(4096), callback: replyReader(onReply) },
	}).on('connect', () => socket.setNoDelay(true));
	return socket;
}

/** Calls with the code of each reply. */
function replyReader(onReply) {
	let code = 0;
	let column = 0;
	let isLast = false;
	return (length, octets) => {
		for (let at = 0; at < length; at++) {
			const octet = octets[at];
			if (column < 3) code = 10 * code + octet - 48;
			else if (column === 3) isLast = octet !== 45;
			column += 1;
			if (octet !== 10) continue;
			if (isLast) onReply(code);
			code = 0;
			column = 0;
		}
		return true;
	};
}

/** Undefined: there is none at the moment. */
function take() {
	if (signMail === null) return waiting.length === 0 ? undefined : mailOf(waiting.shift());
	const mail = ready.shift();
	signAhead();
	return mail;
}

function signAhead() {
	while (signMail !== null && waiting.length > 0 && underSignature + ready.length < mostAhead) {
		underSignature += 1;
		signMail(mailOf(waiting.shift()), (mail) => {
			underSignature -= 1;
			ready.push(mail);
			idle.shift()?.();
		});
	}
}

/** Stores that messages were sent, and leases the next. */
function openQueue() {
	const owner = `least:${process.pid}`;
	const db = new Database(path);
	db.pragma('journal_mode = WAL');
	db.pragma('synchronous = FULL');
	const store = db.prepare(
		`UPDATE messages SET state = 'sent', wake_at = NULL, attempts = attempts + 1, sent_at = ?, last_reply = '250'
		WHERE id = ? AND fence = ?`,
	);
	const take = db.prepare(
		`UPDATE messages SET state = 'leased', wake_at = ?, fence = fence + 1, lease_owner = ?
		WHERE id IN (SELECT id FROM messages WHERE wake_at <= ? ORDER BY wake_at, id LIMIT ?)
		RETURNING id, fence, uuid, email, name`,
	);
	return db.transaction((messages, most) => {
		const now = Date.now();
		for (const { id, fence } of messages) store.run(now, id, fence);
		return take.all(now + 900_000, owner, now, most);
	});
}
