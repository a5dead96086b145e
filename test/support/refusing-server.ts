/** A mail server that refuses all recipients, for tests that relay mail to it. */
import { once } from 'node:events';
import { SMTPServer } from 'smtp-server';
import { freePort } from './listen.js';

interface Refusing {
	readonly port: number;
	close(): Promise<void>;
}

export async function startRefusing({ after = Promise.resolve() } = {}): Promise<Refusing> {
	const port = await freePort();
	const server = new SMTPServer({
		disabledCommands: ['AUTH', 'STARTTLS'],
		disableReverseLookup: true,
		logger: false,
		onRcptTo: ({ address }, _session, answer) => {
			const [responseCode, text] = refusals[address.split(/[.@]/)[0] ?? ''] ?? [
				550,
				'5.1.1 No such user here',
			];
			void after.then(() => answer(Object.assign(new Error(text), { responseCode })));
		},
	});
	server.on('error', () => undefined);
	server.listen(port, '127.0.0.1');
	await once(server.server, 'listening');
	return { port, close: () => new Promise((resolve) => server.close(() => resolve())) };
}

const refusals: Readonly<Record<string, readonly [number, string]>> = {
	full: [552, '5.2.2 Mailbox full'],
	plain: [550, 'No such user here'],
	busy: [450, '4.2.1 Come back later'],
};
