/** An SMTP client that sends the given lines and nothing else. */
import { connect } from 'node:net';

export function talkSmtp(address: string, texts: readonly string[]): Promise<string[]> {
	const colon = address.lastIndexOf(':');
	return new Promise((resolve, reject) => {
		const replies: string[] = [];
		const waiting = [...texts];
		let heard = '';
		const socket = connect(Number(address.slice(colon + 1)), address.slice(0, colon));
		socket.on('error', reject);
		socket.on('close', () => resolve(replies));
		socket.on('data', (piece) => {
			heard += piece.toString();
			if (!/^(?:\d{3}-.*\r\n)*\d{3} .*\r\n$/.test(heard)) return;
			replies.push(heard.trimEnd().split('\r\n').at(-1) ?? '');
			heard = '';
			const next = waiting.shift();
			if (next === undefined) socket.end();
			else socket.write(`${next}\r\n`);
		});
	});
}
