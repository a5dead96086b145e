import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ReturnedMail } from '../../../src/delivery/bounces/ingest.js';
import {
	type BounceListener,
	type BounceListenerOptions,
	IntakeLimits,
	listenForBounces,
} from '../../../src/delivery/bounces/listener.js';
import { createVerp } from '../../../src/delivery/bounces/verp.js';
import { startCpuClock } from '../../support/cpu-clock.js';
import { eventually } from '../../support/eventually.js';
import { refuses } from '../../support/refuses.js';
import { talkSmtp } from '../../support/smtp-talk.js';

const verp = createVerp('bounces@example.com', [
	{ id: 1, secret: Buffer.alloc(32, 1).toString('base64url') },
]);
const message = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';
const to = verp?.addressFor(message) ?? '';
const time = '2027-01-15T08:00:00.000000Z';

let listener: BounceListener | null = null;
afterEach(async () => {
	await listener?.close({ graceMs: 100 });
	listener = null;
});

async function hear(
	options: Partial<BounceListenerOptions>,
	mails: readonly string[] = ['Subject: x\r\n\r\nHello'],
): Promise<{ replies: string[]; log: object[] }> {
	const log: object[] = [];
	listener = await listenForBounces({
		host: '127.0.0.1',
		port: 0,
		tls: null,
		verp: async () => verp,
		ingest: async () => 'bounce',
		clock: { now: () => 1_800_000_000_000_000 },
		log: (line) => log.push(line),
		...options,
	});
	const texts = mails.flatMap((mail) => ['MAIL FROM:<>', `RCPT TO:<${to}>`, 'DATA', `${mail}\r\n.`]);
	return { replies: await talkSmtp(listener.address, ['EHLO mx.example.org', ...texts]), log };
}

describe('the SMTP listener for bounces', () => {
	it('passes on each mail with the id of the message that its return path identifies', async () => {
		const taken: ReturnedMail[] = [];
		const { replies } = await hear(
			{
				ingest: async (mail) => {
					taken.push(mail);
					return 'bounce';
				},
			},
			['Subject: one\r\n\r\n..', 'Subject: two\r\n\r\nHello'],
		);
		expect(replies.at(-1)).toBe('250 2.0.0 Recorded');
		expect(taken.map(({ bytes, returnPath }) => [bytes.toString(), returnPath])).toEqual([
			['Subject: one\r\n\r\n.\r\n', message],
			['Subject: two\r\n\r\nHello\r\n', message],
		]);
	});

	it('logs the error, answers 451 and takes the next mail if the database fails', async () => {
		let tries = 0;
		const { replies, log } = await hear(
			{
				ingest: async () => {
					tries += 1;
					if (tries === 1) throw new Error('the disk is full');
					return 'bounce';
				},
			},
			['Subject: x\r\n', 'Subject: x\r\n'],
		);
		expect(replies.slice(5, 6)).toEqual(['451 4.3.0 Cannot record it now, try later']);
		expect(replies.at(-1)).toBe('250 2.0.0 Recorded');
		expect(log[0]).toEqual({ time, event: 'bounce_not_taken', message, error: 'the disk is full' });
		expect(log.slice(1)).toMatchObject([
			{ bounce_smtp: 'failed', status: 451 },
			{ bounce_smtp: 'bounce', status: 250 },
		]);
	});

	it('logs time, message, result and IP address of each mail, but no email addresses', async () => {
		const { log } = await hear({}, ['Subject: one\r\n\r\nHello']);
		const known = { time, recipient: 'return_path', message, ms: 0, ip: '127.0.0.1' };
		expect(log).toEqual([{ ...known, bounce_smtp: 'bounce', status: 250, bytes: 23 }]);
	});

	it('logs a refused recipient as "unsigned" if it is in the bounce domain, otherwise as "elsewhere"', async () => {
		const { log } = await hear({}, []);
		const forged = `bounces+${'a'.repeat(48)}@example.com`;
		const words = ['EHLO x', 'MAIL FROM:<>', `RCPT TO:<${forged}>`, 'RCPT TO:<ann@example.org>'];
		await talkSmtp(listener?.address ?? '', words);
		const nothing = { time, bounce_smtp: 'refused', message: null, ms: 0, bytes: 0, ip: '127.0.0.1' };
		expect(log).toEqual([
			{ ...nothing, recipient: 'unsigned', status: 550 },
			{ ...nothing, recipient: 'elsewhere', status: 550 },
		]);
	});

	it('ends a connection after ten refused recipients, and logs them in one line', async () => {
		const { log } = await hear({}, []);
		const forged = (at: number) =>
			`RCPT TO:<bounces+${String(at).padStart(48, 'a').replace(/\d/g, 'b')}@example.com>`;
		const words = ['EHLO x', 'MAIL FROM:<>', ...Array.from({ length: 30 }, (_, at) => forged(at))];
		const replies = await talkSmtp(listener?.address ?? '', words);
		expect(replies.slice(3)).toEqual([
			...Array.from({ length: 10 }, () => '550 5.1.1 No such return path'),
			'421 4.7.0 Too many refused recipients',
		]);
		expect(log).toMatchObject([{ bounce_smtp: 'refused', recipient: 'unsigned', status: 550 }]);
	});

	it('stays fast for other clients under a flood of refused recipients', async () => {
		const { log } = await hear({}, []);
		const port = Number(listener?.address.split(':').at(-1));
		let isOver = false;
		let connections = 0;
		const flood = async () => {
			while (!isOver) {
				const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
				connections += 1;
				socket.on('error', () => undefined);
				const greeting = await once(socket, 'data');
				socket.resume();
				if (!String(greeting).startsWith('220')) {
					socket.destroy();
					continue;
				}
				const many = 'RCPT TO:<ann@example.org>\r\n'.repeat(5_000);
				socket.write(`EHLO x\r\nMAIL FROM:<>\r\n${many}`);
				await once(socket, 'close');
			}
		};
		const heapBefore = process.memoryUsage().rss;
		const floods = [flood(), flood(), flood(), flood()];
		const times: number[] = [];
		for (let at = 0; at < 50; at++) {
			const cpuMs = startCpuClock();
			const replies = await talkSmtp(listener?.address ?? '', ['EHLO x', 'MAIL FROM:<>', `RCPT TO:<${to}>`]);
			expect(replies.at(-1)).toMatch(/^250 /);
			times.push(cpuMs());
		}
		isOver = true;
		await Promise.all(floods);
		expect(connections).toBeGreaterThan(10);
		expect(log.length).toBeLessThanOrEqual(4);
		expect(times.sort((a, b) => a - b).at(-1)).toBeLessThan(5_000);
		expect(process.memoryUsage().rss - heapBefore).toBeLessThan(200 * 1024 * 1024);
	});

	it('refuses and logs a mail that is too large, and records nothing', async () => {
		let ingested = 0;
		const { replies, log } = await hear(
			{
				ingest: async () => {
					ingested += 1;
					return 'bounce';
				},
			},
			[`Subject: x\r\n\r\n${`${'y'.repeat(998)}\r\n`.repeat(27_000)}`],
		);
		expect(replies.at(-1)).toMatch(/^552 /);
		expect(ingested).toBe(0);
		expect(log).toMatchObject([{ bounce_smtp: 'refused', recipient: 'return_path', message, status: 552 }]);
	});

	it('answers 451 to a bounce whose message is still being sent', async () => {
		const { replies, log } = await hear({ ingest: async () => 'in_flight' });
		expect(replies.at(-1)).toMatch(/^451 4\.3\.0 /);
		expect(log).toMatchObject([{ bounce_smtp: 'in_flight', status: 451 }]);
	});

	it('refuses to relay if no bounce address is set', async () => {
		await hear({ verp: async () => null }, []);
		const words = ['EHLO mx.example.org', 'MAIL FROM:<>', `RCPT TO:<${to}>`];
		const replies = await talkSmtp(listener?.address ?? '', words);
		expect(replies[3]).toBe('550 5.7.1 Relaying denied');
	});

	it('allows twenty connections at once from one address', async () => {
		await hear({}, []);
		const address = listener?.address ?? '';
		const port = Number(address.split(':').at(-1));
		const sockets = Array.from({ length: 20 }, () => connect(port, '127.0.0.1'));
		await Promise.all(sockets.map((socket) => once(socket, 'data')));
		expect((await talkSmtp(address, []))[0]).toBe('421 4.7.0 Too many connections from your address');
		for (const socket of sockets) socket.destroy();
		await eventually(async () => expect((await talkSmtp(address, []))[0]).toMatch(/^220 /));
	});

	it('ends a connection at its time limit, even in the middle of a mail', async () => {
		let ingested = 0;
		const count = async () => {
			ingested += 1;
			return 'bounce' as const;
		};
		await hear({ maxConnectionMs: 2_000, ingest: count }, []);
		const socket = connect(Number(listener?.address.split(':').at(-1)), '127.0.0.1');
		let heard = '';
		socket.on('data', (chunk) => {
			heard += chunk.toString();
		});
		await once(socket, 'data');
		socket.write(`EHLO slow.example\r\nMAIL FROM:<>\r\nRCPT TO:<${to}>\r\nDATA\r\nSubject: x`);
		await once(socket, 'close');
		expect(heard).toMatch(/354 [^\r]*\r\n421 .*4\.4\.2 This took too long, try again\r\n$/);
		expect(ingested).toBe(0);
	});

	it('fails with EADDRINUSE if its port is in use', async () => {
		await hear({});
		const port = Number(listener?.address.split(':').at(-1));
		const first = listener;
		await refuses(hear({ port }), 'EADDRINUSE');
		listener = first;
	});
});

describe('the limits of one network', () => {
	it('apply to a whole /64 of IPv6, and to an IPv4 address in any notation', () => {
		const limits = new IntakeLimits({ maxConnections: 1 });
		const ofOne = ['2001:db8:0:1::1', '2001:0db8::1:ffff:0:0:2', '2001:db8:0:1:a:b:c:d'];
		expect(ofOne.map((ip) => limits.connect(ip))).toEqual([true, false, false]);
		expect(limits.connect('2001:db8:0:2::1')).toBe(true);
		expect(['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.2'].map((ip) => limits.connect(ip))).toEqual([
			true,
			false,
			true,
		]);
		for (const ip of ofOne) limits.disconnect(ip);
		expect(limits.connect('2001:db8:0:1::9')).toBe(true);
	});

	it('block new connections for the rest of the minute after too many refused recipients', () => {
		let now = 0;
		const limits = new IntakeLimits({ maxRefused: 2, now: () => now });
		limits.refused('a');
		expect(limits.connect('a')).toBe(true);
		limits.refused('a');
		expect([limits.connect('a'), limits.connect('b')]).toEqual([false, true]);
		now = 60_000;
		expect(limits.connect('a')).toBe(true);
	});
});
