import { afterEach, describe, expect, it } from 'vitest';
import type { SmtpPool } from '../../src/delivery/smtp/pool.js';
import type { SmtpSettings } from '../../src/delivery/smtp/settings.js';
import { plainSettings, testPool, testWorker, timeoutsFor } from '../support/delivery.js';
import { createMemoryQueue } from '../support/memory-queue.js';
import { type FaultScript, type FaultServer, startFaultServer } from '../support/smtp-fault.js';

let server: FaultServer | undefined;
let pool: SmtpPool | undefined;

afterEach(async () => {
	pool?.abort();
	await server?.close();
	server = undefined;
	pool = undefined;
});

async function sendTo(script: FaultScript, settings: Partial<SmtpSettings> = {}, cc: string[] = []) {
	server = await startFaultServer(script);
	const timeouts = timeoutsFor(script);
	pool = testPool(server.port, {
		...{ settings: plainSettings(server.port, settings), timeouts, connections: 1 },
	});
	const memory = createMemoryQueue({ to: ['a@example.net'], envelope: { cc }, now: Date.now() * 1_000 });
	const result = await testWorker(memory, pool, { connections: 1 }).run({ scope: null, until: 'settled' });
	return { result, memory, outcome: memory.row(0).outcomes[0], state: memory.row(0).state };
}

async function sendMany(
	count: number,
	script: FaultScript,
	options: { connections: number; maxMessages?: number },
) {
	server = await startFaultServer(script);
	pool = testPool(server.port, options);
	const memory = createMemoryQueue({
		to: Array.from({ length: count }, (_, index) => `r${index}@example.net`),
	});
	const { connections } = options;
	const result = await testWorker(memory, pool, { connections }).run({ scope: null, until: 'settled' });
	return { server, result };
}

const login = { user: 'me', password: 'hunter2-secret', security: 'required' } as const;

describe('a session without STARTTLS', () => {
	it('sends neither AUTH nor the password if the settings require encryption', async () => {
		await sendTo({ ehlo: ['AUTH PLAIN LOGIN'] }, login);
		const said = server?.lines.join('\n') ?? '';
		expect(said).not.toMatch(/AUTH/);
		expect(said).not.toContain(Buffer.from('\0me\0hunter2-secret').toString('base64'));
	});
});

describe('a connection of the pool', () => {
	it.each([[[]], [['PIPELINING']]])('is replaced if the server ends it (extensions: %j)', async (ehlo) => {
		const { server, result } = await sendMany(
			20,
			{
				ehlo,
				on: (phase, _line, { mails }) =>
					phase === 'MAIL' && mails > 2 ? { answer: '421 4.7.0 Enough', thenClose: true } : undefined,
			},
			{ connections: 2 },
		);
		expect(result.counts).toMatchObject({ sent: 20, deferred: 0 });
		expect(server.bodies).toHaveLength(20);
		expect(server.connections).toBeGreaterThanOrEqual(10);
	});

	it('that drops after the final dot makes only one message uncertain', async () => {
		const { server, result } = await sendMany(
			20,
			{
				ehlo: ['PIPELINING'],
				on: (phase, _line, { number, mails }) =>
					phase === 'dot' && number === 1 && mails === 3 ? { drop: true } : undefined,
			},
			{ connections: 1 },
		);
		expect(result.counts).toMatchObject({ sent: 19, uncertain: 1, deferred: 0 });
		expect(server.bodies).toHaveLength(20);
	});

	it('is reused if the server refuses further connections', async () => {
		const { result } = await sendMany(
			40,
			{
				on: (phase, _line, { number }) =>
					phase === 'connect' && number > 2
						? { answer: '421 4.7.0 Too many connections', thenClose: true }
						: undefined,
			},
			{ connections: 5 },
		);
		expect(result).toMatchObject({ kind: 'done', counts: { sent: 40 } });
	});
});

describe('a large body', () => {
	it('is reported as broken in the phase "body" if the connection drops before the final dot', async () => {
		server = await startFaultServer({ at: { body: { drop: true } } });
		pool = testPool(server.port);
		const conversation = await pool.send({
			from: 'a@example.com',
			to: 'b@example.net',
			copies: [],
			bytes: Buffer.alloc(30_000_000, `${'x'.repeat(70)}\r\n`),
		});
		expect(conversation).toMatchObject({ kind: 'broken', reply: { phase: 'body' } });
	});
});

describe('a non-ASCII address', () => {
	it('is sent with its domain in punycode, but needs SMTPUTF8 for its local part', async () => {
		server = await startFaultServer({});
		pool = testPool(server.port);
		const mail = { from: 'a@example.com', copies: [], bytes: Buffer.from('x\r\n') };
		expect(await pool.send({ ...mail, to: 'b@bücher.example' })).toMatchObject({ kind: 'accepted' });
		expect(server.lines).toContain('RCPT TO:<b@xn--bcher-kva.example>');
		expect(await pool.send({ ...mail, to: 'bé@example.net' })).toMatchObject({ kind: 'unsendable' });
	});
});
