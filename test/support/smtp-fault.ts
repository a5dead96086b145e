/**
 * An SMTP server over a bare socket that misbehaves as told: at a phase it answers something else, drops the
 * connection, hangs, drips or floods. Everything it is not told goes well.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';

export type FaultPhase =
	| 'connect'
	| 'EHLO'
	| 'STARTTLS'
	| 'AUTH'
	| 'MAIL'
	| 'RCPT'
	| 'DATA'
	| 'body'
	| 'dot'
	| 'RSET'
	| 'QUIT';

export type Fault =
	| { answer: string; thenClose?: boolean }
	| { drop: true }
	/** No answer, ever. */
	| { hang: true }
	/** One byte of a good-looking answer every `everyMs`. */
	| { drip: string; everyMs: number }
	/** One line of so many bytes without an end. */
	| { flood: number };

export interface FaultScript {
	at?: Partial<Record<FaultPhase, Fault>>;
	/** Asked before `at`: by recipient, by count and so on. `undefined` = nothing special. */
	on?: (phase: FaultPhase, line: string, connection: { number: number; mails: number }) => Fault | undefined;
	ehlo?: readonly string[];
}

export interface FaultServer {
	readonly port: number;
	/** Every line clients sent outside bodies, in order. */
	readonly lines: readonly string[];
	/** Bodies that were ended with a dot, dot-stuffed as they came. */
	readonly bodies: readonly string[];
	readonly connections: number;
	close(): Promise<void>;
}

export async function startFaultServer(script: FaultScript): Promise<FaultServer> {
	const state = { lines: [] as string[], bodies: [] as string[], connections: 0 };
	const sockets = new Set<Socket>();
	const server = createServer((socket) => {
		state.connections += 1;
		sockets.add(socket);
		socket.on('close', () => sockets.delete(socket));
		socket.on('error', () => undefined);
		converse(socket, script, state);
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	// A listening TCP server's address is never a pipe's string.
	const { port } = server.address() as AddressInfo;
	return {
		port,
		lines: state.lines,
		bodies: state.bodies,
		get connections() {
			return state.connections;
		},
		close: () =>
			new Promise((resolve) => {
				for (const socket of sockets) socket.destroy();
				server.close(() => resolve());
			}),
	};
}

type State = { lines: string[]; bodies: string[]; connections: number };

function converse(socket: Socket, script: FaultScript, state: State): void {
	const connection = { number: state.connections, mails: 0 };
	let buffered = '';
	let body: string | null = null;
	let isMute = false;

	const react = (phase: FaultPhase, line: string, usual: string): Fault | undefined => {
		const fault = script.on?.(phase, line, connection) ?? script.at?.[phase];
		if (fault === undefined) socket.write(`${usual}\r\n`);
		else isMute = commit(socket, fault) || isMute;
		return fault;
	};
	const command = (line: string) => {
		state.lines.push(line);
		const phase = phaseOf(line);
		if (phase === 'MAIL') connection.mails += 1;
		if (phase === null) socket.write('500 5.5.2 What?\r\n');
		else if (phase === 'EHLO') react(phase, line, greeting(script.ehlo ?? []));
		else if (phase !== 'DATA') react(phase, line, usualAnswers[phase] ?? '');
		else if (takesBody(react(phase, line, '354 Go ahead'))) body = '';
	};
	socket.setEncoding('latin1');
	socket.on('data', (chunk: string) => {
		if (isMute) return;
		buffered += chunk;
		for (;;) {
			if (body !== null) {
				const fault = script.on?.('body', '', connection) ?? script.at?.body;
				if (fault !== undefined) {
					isMute = true;
					commit(socket, fault);
					return;
				}
				const end = `\r\n${buffered}`.indexOf('\r\n.\r\n');
				if (end < 0) return;
				state.bodies.push(buffered.slice(0, end));
				buffered = buffered.slice(end + 3);
				body = null;
				react('dot', '', '250 2.0.0 Taken');
			}
			const end = buffered.indexOf('\r\n');
			if (end < 0 || isMute) return;
			const line = buffered.slice(0, end);
			buffered = buffered.slice(end + 2);
			command(line);
		}
	});
	react('connect', '', '220 fault.test ESMTP');
}

const usualAnswers: Readonly<Record<string, string>> = {
	STARTTLS: '454 4.7.0 No TLS here',
	AUTH: '235 2.7.0 Welcome',
	MAIL: '250 2.1.0 Ok',
	RCPT: '250 2.1.5 Ok',
	RSET: '250 2.0.0 Ok',
	QUIT: '221 2.0.0 Bye',
};

function phaseOf(line: string): FaultPhase | null {
	const verb = /^[A-Za-z]+/.exec(line)?.[0]?.toUpperCase() ?? '';
	if (verb === 'HELO') return 'EHLO';
	return isPhase(verb) ? verb : null;
}

function isPhase(verb: string): verb is FaultPhase {
	return verb === 'EHLO' || verb === 'DATA' || verb in usualAnswers;
}

function takesBody(fault: Fault | undefined): boolean {
	return fault === undefined || ('answer' in fault && fault.answer.startsWith('354'));
}

function greeting(keywords: readonly string[]): string {
	return ['fault.test', ...keywords]
		.map((word, index, all) => `250${index === all.length - 1 ? ' ' : '-'}${word}`)
		.join('\r\n');
}

/** True: the server says nothing more on this connection. */
function commit(socket: Socket, fault: Fault): boolean {
	if ('answer' in fault) {
		socket.write(`${fault.answer}\r\n`);
		if (fault.thenClose) socket.end();
		return fault.thenClose ?? false;
	}
	if ('drop' in fault) socket.destroy();
	else if ('flood' in fault) socket.write(`250-${'x'.repeat(fault.flood)}`);
	else if ('drip' in fault) drip(socket, fault.drip, fault.everyMs);
	return true;
}

function drip(socket: Socket, text: string, everyMs: number): void {
	let next = 0;
	const timer = setInterval(() => {
		if (socket.destroyed) clearInterval(timer);
		else socket.write(text[next++ % text.length] ?? ' ');
	}, everyMs);
	socket.on('close', () => clearInterval(timer));
}
