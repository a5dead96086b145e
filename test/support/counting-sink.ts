/** An SMTP server in this process that counts mails and keeps none. */
import { createServer } from 'node:net';
import { listenOn } from './listen.js';

export interface CountingSink {
	readonly port: number;
	received(): number;
	close(): void;
}

export async function startCountingSink(
	took: (recipient: string) => void = () => undefined,
): Promise<CountingSink> {
	let count = 0;
	const server = createServer({ noDelay: true }, (socket) => {
		let isData = false;
		let rest = '';
		let recipient = '';
		const answerLine = (line: string) => {
			if (isData && line !== '.') return;
			if (isData) {
				count += 1;
				took(recipient);
			} else if (/^RCPT TO:/i.test(line)) recipient = /<([^>]*)>/.exec(line)?.[1] ?? '';
			const isEnd = isData;
			isData = !isEnd && /^DATA/i.test(line);
			socket.write(isEnd ? '250 taken\r\n' : answerTo(line));
		};
		socket.on('error', () => undefined).write('220 sink\r\n');
		socket.on('data', (chunk) => {
			const lines = (rest + chunk.toString('latin1')).split('\r\n');
			rest = lines.pop() ?? '';
			for (const line of lines) answerLine(line);
		});
	});
	const port = await listenOn(server);
	return { port, received: () => count, close: () => void server.close() };
}

function answerTo(line: string): string {
	if (/^EHLO/i.test(line)) return '250-sink\r\n250 PIPELINING\r\n';
	if (/^DATA/i.test(line)) return '354 go on\r\n';
	return /^QUIT/i.test(line) ? '221 bye\r\n' : '250 ok\r\n';
}
