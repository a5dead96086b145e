import { afterEach, describe, expect, it } from 'vitest';
import type { SmtpPool } from '../../src/delivery/smtp/pool.js';
import { plainSettings, testPool } from '../support/delivery.js';
import { type FaultPhase, type FaultServer, startFaultServer } from '../support/smtp-fault.js';

const user = 'desk';
const password = 'hunter2-secret';
const encoded = Buffer.from(password).toString('base64');
const plain = Buffer.from(`\0${user}\0${password}`).toString('base64');
const said = `550 5.7.8 \x1b]0;owned\x07\x9b31m ${password} ${encoded} AUTH PLAIN ${plain} refused`;

let server: FaultServer;
let pool: SmtpPool;

afterEach(async () => {
	pool.abort();
	await server.close();
});

async function toldAt(phase: FaultPhase): Promise<string> {
	server = await startFaultServer({ ehlo: ['AUTH PLAIN'], at: { [phase]: { answer: said } } });
	const trace: string[] = [];
	pool = testPool(server.port, {
		settings: plainSettings(server.port, { user, password, security: 'never' }),
		onTrace: ({ line }) => trace.push(line),
	});
	const bytes = Buffer.from('Subject: S\r\n\r\nT\r\n');
	const { reply } = await pool.send({ from: 'a@example.com', to: 'b@example.net', copies: [], bytes });
	return `${trace.join('\n')}\n${reply.text}`;
}

describe('logged replies of a mail server', () => {
	it.each([
		'connect',
		'EHLO',
		'AUTH',
		'MAIL',
		'RCPT',
		'DATA',
		'dot',
	] as const)('contain no password and no control characters in the phase %s', async (phase) => {
		const told = await toldAt(phase);
		expect(told).toContain('*** *** AUTH PLAIN *** refused');
		for (const secret of [password, encoded, plain]) expect(told).not.toContain(secret);
		expect(told).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
	});
});
