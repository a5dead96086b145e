/** Feeds Node's parser in small pieces. A chunk of 64 KiB can contain 3,600 requests, which take 18 MB and 50 ms. */
import type { Socket } from 'node:net';

/** Few requests are longer. Parsing a body of 10 MiB takes 20 ms longer in pieces. */
const pieceBytes = 1024;
/** Limits an event-loop turn for all connections together: about 4 ms of work, or 512 KiB of bodies. */
const requestsATurn = 64;
const piecesATurn = 512;

export type Feed = ReturnType<typeof createFeed>;

export function createFeedQueue() {
	const waiting = new Set<() => boolean>();
	let made = 0;
	const turn = () => {
		made = 0;
		let pieces = 0;
		for (const feedPiece of waiting) {
			waiting.delete(feedPiece);
			if (feedPiece()) waiting.add(feedPiece);
			pieces += 1;
			if (made >= requestsATurn || pieces >= piecesATurn) break;
		}
		if (waiting.size > 0) setImmediate(turn);
	};
	return {
		add: (feedPiece: () => boolean) => {
			if (waiting.size === 0) setImmediate(turn);
			waiting.add(feedPiece);
		},
		count: () => {
			made += 1;
		},
	};
}

/** Puts a queue between the socket and Node's parser, which is the first listener for `data`. */
export function createFeed(socket: Socket, queue: ReturnType<typeof createFeedQueue>) {
	const [parse] = socket.listeners('data');
	if (parse === undefined) throw new Error('node attached no parser to the connection');
	socket.removeListener('data', parse as (chunk: Buffer) => void);
	let rest: Buffer = none;
	let isHeld = false;
	let isDropped = false;
	const mayFeed = () => !isHeld && !isDropped && !socket.destroyed && !isPausedByNode(socket);
	const feedPiece = (): boolean => {
		if (!mayFeed()) return false;
		const piece = rest.subarray(0, pieceBytes);
		rest = rest.length > pieceBytes ? rest.subarray(pieceBytes) : none;
		if (piece.length > 0) parse.call(socket, piece);
		if (!mayFeed()) return false;
		if (rest.length === 0) socket.resume();
		return rest.length > 0;
	};
	const goOn = () => {
		if (rest.length > 0) queue.add(feedPiece);
		else socket.resume();
	};
	socket.on('data', (chunk: Buffer) => {
		if (isDropped) return;
		if (chunk.length <= pieceBytes && rest.length === 0 && mayFeed()) {
			parse.call(socket, chunk);
			return;
		}
		rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
		socket.pause();
		if (mayFeed()) queue.add(feedPiece);
	});
	// Node resumes the socket to read a body, or after the client has read responses. Undo that while data waits here.
	socket.on('resume', () => {
		if (isDropped || (!isHeld && rest.length === 0)) return;
		socket.pause();
		if (mayFeed()) queue.add(feedPiece);
	});
	return {
		hold: () => {
			isHeld = true;
			socket.pause();
		},
		release: () => {
			if (!isHeld) return;
			isHeld = false;
			if (!isDropped && !isPausedByNode(socket)) goOn();
		},
		drop: () => {
			isDropped = true;
			rest = none;
		},
	};
}

const none = Buffer.alloc(0);

/** Node sets the undocumented `_paused` while a client does not read its responses. */
function isPausedByNode(socket: Socket): boolean {
	return '_paused' in socket && socket._paused === true;
}
