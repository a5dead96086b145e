/**
 * An SMTP server on a plain socket that misbehaves in a given phase: it gives another answer, drops the connection,
 * hangs, drips or floods. Otherwise it behaves well.
 */
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import { listenOn } from './listen.js';

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
	| { later: Promise<Fault> }
	| { halfClose: true }
	| { drop: true }
	| { hang: true }
	| { drip: string; everyMs: number }
	| { flood: number };

export interface FaultScript {
	at?: Partial<Record<FaultPhase, Fault>>;
	on?: (phase: FaultPhase, line: string, connection: { number: number; mails: number }) => Fault | undefined;
	ehlo?: readonly string[];
	tls?: { key: string; cert: string; from: 'starttls' | 'start' };
}

export interface FaultServer {
	readonly port: number;
	readonly lines: readonly string[];
	readonly bodies: readonly string[];
	readonly connections: number;
	close(): Promise<void>;
}

export async function startFaultServer(script: FaultScript): Promise<FaultServer> {
	const state = { lines: [] as string[], bodies: [] as string[], connections: 0 };
	const sockets = new Set<Socket>();
	const onConnection = (socket: Socket) => {
		state.connections += 1;
		sockets.add(socket);
		socket.on('close', () => sockets.delete(socket));
		socket.on('error', () => undefined);
		converse(socket, script, state);
	};
	const isImplicit = script.tls?.from === 'start';
	const server = isImplicit
		? createTlsServer({ ...script.tls }, onConnection).on('tlsClientError', () => undefined)
		: createServer({ allowHalfOpen: true }, onConnection);
	const port = await listenOn(server);
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
	talk(socket, script, state, connection);
	react(socket, script, connection, { phase: 'connect', line: '', usual: '220 fault.test ESMTP' });
}

type Connection = { number: number; mails: number };

function react(
	socket: Socket,
	script: FaultScript,
	connection: Connection,
	{ phase, line, usual }: { phase: FaultPhase; line: string; usual: string },
): Fault | undefined {
	const fault = script.on?.(phase, line, connection) ?? script.at?.[phase];
	if (fault === undefined) socket.write(`${usual}\r\n`);
	else if (commit(socket, fault)) mute.add(socket);
	return fault;
}

const mute = new WeakSet<Socket>();

function talk(socket: Socket, script: FaultScript, state: State, connection: Connection): void {
	let buffered = '';
	let body: string | null = null;
	const answer = (phase: FaultPhase, line: string, usual: string) =>
		react(socket, script, connection, { phase, line, usual });
	const command = (line: string) => {
		state.lines.push(line);
		const phase = phaseOf(line);
		if (phase === 'MAIL') connection.mails += 1;
		if (phase === null) socket.write('500 5.5.2 What?\r\n');
		else if (phase === 'EHLO') answer(phase, line, greeting(script.ehlo ?? []));
		else if (phase === 'STARTTLS' && script.tls?.from === 'starttls') startTls(line);
		else if (phase !== 'DATA') answer(phase, line, usualAnswers[phase] ?? '');
		else if (takesBody(answer(phase, line, '354 Go ahead'))) body = '';
	};
	const startTls = (line: string) => {
		if (answer('STARTTLS', line, '220 2.0.0 Go ahead') !== undefined) return;
		socket.removeAllListeners('data');
		const secured = new TLSSocket(socket, { ...script.tls, isServer: true });
		secured.on('error', () => socket.destroy());
		talk(secured, script, state, connection);
	};
	socket.on('data', (chunk: Buffer) => {
		if (mute.has(socket)) return;
		buffered += chunk.toString('latin1');
		for (;;) {
			if (body !== null) {
				const fault = script.on?.('body', '', connection) ?? script.at?.body;
				if (fault !== undefined) {
					mute.add(socket);
					commit(socket, fault);
					return;
				}
				const end = `\r\n${buffered}`.indexOf('\r\n.\r\n');
				if (end < 0) return;
				state.bodies.push(buffered.slice(0, end));
				buffered = buffered.slice(end + 3);
				body = null;
				answer('dot', '', '250 2.0.0 Taken');
			}
			const end = buffered.indexOf('\r\n');
			if (end < 0 || mute.has(socket)) return;
			const line = buffered.slice(0, end);
			buffered = buffered.slice(end + 2);
			command(line);
		}
	});
	socket.on('end', () => socket.end());
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

function commit(socket: Socket, fault: Fault): boolean {
	if ('answer' in fault) {
		socket.write(`${fault.answer}\r\n`);
		if (fault.thenClose) socket.end();
		return fault.thenClose ?? false;
	}
	if ('later' in fault) {
		void fault.later.then((told) => commit(socket, told));
		return false;
	}
	if ('halfClose' in fault) socket.end();
	else if ('drop' in fault) socket.destroy();
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
