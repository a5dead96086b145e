/** Talks SMTP as far as STARTTLS (RFC 3207), for a look at the certificate behind it. */
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** Of all that a mail server may say before the handshake; four replies are a few hundred bytes. */
const mostBytes = 64 * 1024;

/**
 * An open connection, ready for the TLS handshake; `refused`: the server has no STARTTLS. Rejects when the server is
 * not reached, does not speak SMTP, sends too much, or the signal is aborted.
 */
export async function startTls(server: {
	host: string;
	port: number;
	ehloName: string;
	signal: AbortSignal;
}): Promise<Socket | 'refused'> {
	const socket = connect(server);
	const talk = talkOn(socket);
	try {
		await talk.expect('220');
		await talk.say(`EHLO ${server.ehloName}`);
		const offers = await talk.expect('250');
		if (!offers.some((offer) => /^starttls$/i.test(offer))) {
			socket.end('QUIT\r\n');
			return 'refused';
		}
		await talk.say('STARTTLS');
		await talk.expect('220');
		talk.stop();
		return socket;
	} catch (error) {
		socket.destroy();
		throw error;
	}
}

function talkOn(socket: Socket) {
	let heard = 0;
	const count = (piece: Buffer) => {
		heard += piece.length;
		// A line that never ends would be kept until there is no memory left.
		if (heard > mostBytes) socket.destroy(new Error('the mail server says more than 64 KiB'));
	};
	socket.on('data', count);
	const lines = createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY });
	const reading = lines[Symbol.asyncIterator]();
	// Of the connection itself; the lines alone would just end.
	const failed = new Promise<never>((_, reject) => socket.on('error', reject));
	failed.catch(() => undefined);
	return {
		say: (line: string) => {
			socket.write(`${line}\r\n`);
		},
		/** The texts of a reply (RFC 5321 s.4.2.1), without their codes. */
		expect: async (code: string): Promise<string[]> => {
			const texts: string[] = [];
			for (;;) {
				const { done, value: line } = await Promise.race([reading.next(), failed]);
				if (done === true) throw new Error('the mail server hung up');
				if (!line.startsWith(code)) throw new Error(`the mail server said: ${line.slice(0, 200)}`);
				texts.push(line.slice(4).trim());
				if (line.charAt(3) !== '-') return texts;
			}
		},
		stop: () => {
			lines.close();
			socket.off('data', count);
		},
	};
}
