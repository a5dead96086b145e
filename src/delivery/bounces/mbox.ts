/** The mails of an mbox, one after the other: `From ` lines part them, `>From ` within is written back. */

/** What is kept of a mail; nothing behind it is ever read. */
const maxMailBytes = 4 * 1024 * 1024;
/** A separator is a line: nothing longer has to be held back for the next piece. */
const maxSeparator = 1_000;

const day = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const month = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const sender = String.raw`(?:"[^"\n]{1,64}"\S{0,255}|\S{1,320})`;
/** As ctime writes it (RFC 4155), with a time zone at either place, or as in a header. */
const moment = String.raw`${day},?[ \t]+(?:${month}[ \t]+\d{1,2}|\d{1,2}[ \t]+${month}[ \t]+\d{4})[ \t]+\d{1,2}:\d\d[^\n]{0,60}`;

/**
 * Where `From` begins a line of a mail's own text, it stands behind no empty line, or no time of day follows it. Some
 * write no empty line: then all of the line has to be right, a header to follow, and the line before to be no rule, as
 * stands before a message that is returned as text.
 */
const separator = new RegExp(
	String.raw`(?<!\n[-=_*]{3,200}[ \t\r]{0,5})\n(?:\r?\n)?From ${sender}[ \t]+${moment}\n(?=[!-9;-~]{1,100}:)|\n\r?\nFrom [^\n]{1,700}\d:\d\d[^\n]{0,50}\n`,
);

/** Whether a file that begins so is an mbox; a single mail with such a line, as pipes write it, is one too. */
export function isMbox(begin: Buffer): boolean {
	return begin.toString('latin1', 0, 5) === 'From ';
}

/** Reads any size with little memory: of each mail at most 4 MiB. */
export async function* splitMbox(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
	// The first separator has no empty line before it.
	let pending = '\n\n';
	let mail = startMail();
	for await (const piece of pieces) {
		pending += piece.toString('latin1');
		for (let found = separator.exec(pending); found !== null; found = separator.exec(pending)) {
			mail.add(pending.slice(0, found.index + 1));
			yield* mail.bytes();
			mail = startMail();
			pending = pending.slice(found.index + found[0].length);
		}
		// The beginning of a separator may be at the end.
		const rest = Math.max(0, pending.length - maxSeparator);
		mail.add(pending.slice(0, rest));
		pending = pending.slice(rest);
	}
	mail.add(pending);
	yield* mail.bytes();
}

interface MailText {
	add(text: string): void;
	/** One; none where there is nothing but empty lines, as before the first separator. */
	bytes(): Buffer[];
}

function startMail(): MailText {
	const kept: string[] = [];
	let length = 0;
	return {
		add: (text) => {
			if (length < maxMailBytes) kept.push(text.slice(0, maxMailBytes - length));
			length += text.length;
		},
		bytes: () => {
			const text = kept.join('').replace(/^(?:\r?\n)+/, '');
			return text === '' ? [] : [Buffer.from(text.replace(/^>(>*From )/gm, '$1'), 'latin1')];
		},
	};
}
