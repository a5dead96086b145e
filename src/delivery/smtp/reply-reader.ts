/** Cuts what a server says into replies (RFC 5321 s.4.2.1), however its packets are cut. */

export interface ReplyReader {
	/**
	 * The replies that a chunk completes, continuation lines joined by LF, without CRs. A line without a code is a reply
	 * of its own, for others to judge.
	 */
	read(chunk: Buffer): readonly string[];
	/** A reply has gone on and on: what comes is of no use any more. */
	readonly isTooLarge: boolean;
	/** What came without a line end, if it begins as a refusal: some servers hang up in the middle of it. */
	lastWords(): string | null;
}

/** `maxBytes` bounds one reply. */
export function createReplyReader(maxBytes: number): ReplyReader {
	// Bytes as latin1, so that a character cut in two by a packet is whole again when it is decoded.
	let rest = '';
	/** The lines of a reply so far, with their LFs. */
	let begun = '';
	/** The reply that a line completes; null while it goes on. Empty lines between replies mean nothing. */
	const add = (line: string): string | null => {
		begun += line.endsWith('\r') ? line.slice(0, -1) : line;
		if (isContinued(line)) {
			begun += '\n';
			return null;
		}
		const reply = begun;
		begun = '';
		return reply === '' ? null : decoded(reply);
	};
	return {
		read(chunk) {
			const text = chunk.toString('latin1');
			// A line without an end is only collected: looking through all of it for each packet takes quadratic time.
			const lines = text.includes('\n') ? (rest + text).split('\n') : [rest + text];
			rest = lines.pop() ?? '';
			const replies: string[] = [];
			for (const line of lines) {
				const reply = add(line);
				if (reply !== null) replies.push(reply);
			}
			return replies;
		},
		get isTooLarge() {
			return rest.length + begun.length > maxBytes;
		},
		lastWords() {
			const words = begun + rest;
			return /^[45]\d{2}(?:[ -]|$)/.test(words) ? decoded(words) : null;
		},
	};
}

function isContinued(line: string): boolean {
	return line[3] === '-' && /^\d{3}/.test(line);
}

function decoded(latin1: string): string {
	return /[\x80-\xff]/.test(latin1) ? Buffer.from(latin1, 'latin1').toString('utf8') : latin1;
}
