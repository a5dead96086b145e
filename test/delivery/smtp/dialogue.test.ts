import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Dialogue } from '../../../src/delivery/smtp/dialogue.js';
import type { Conversation, Mail } from '../../../src/delivery/smtp/transaction.js';
import type { SmtpPhase } from '../../../src/engine/rules/outcomes.js';

const mailTo = (to: string, copies: string[] = []): Mail => ({
	from: 'news@example.com',
	to,
	copies,
	bytes: Buffer.from(`to ${to}\r\n`),
});

/** A dialogue that writes to a list of packets. `ended` has the result of each mail, in the order of sending. */
function talk(extensions = ['PIPELINING']) {
	const packets: string[] = [];
	const waits: (SmtpPhase | null)[] = [];
	const ended: (Conversation | null | undefined)[] = [];
	const state = { isClosed: false, isFull: false };
	const dialogue = new Dialogue({
		hide: (text) => text,
		extensions: new Map(
			extensions.map((keyword) => [keyword.split(' ')[0] ?? '', keyword.split(' ')[1] ?? '']),
		),
		write: (bytes) => {
			packets.push(bytes.toString());
			return !state.isFull;
		},
		isWritten: () => !state.isFull,
		close: () => {
			state.isClosed = true;
		},
		onWait: (phase) => waits.push(phase),
	});
	return {
		dialogue,
		packets,
		waits,
		ended,
		state,
		send(mail: Mail) {
			const at = ended.push(undefined) - 1;
			void dialogue.send(mail).then((conversation) => {
				ended[at] = conversation;
			});
		},
		async hear(...lines: string[]) {
			dialogue.receive(Buffer.from(lines.map((line) => `${line}\r\n`).join('')));
			await Promise.resolve();
			await Promise.resolve();
		},
	};
}

const envelopeTo = (to: string) => `MAIL FROM:<news@example.com>\r\nRCPT TO:<${to}>\r\nDATA\r\n`;

describe('a server with PIPELINING', () => {
	it('gets an envelope in one packet, and the next envelope together with the body', async () => {
		const { send, hear, packets, ended } = talk();
		send(mailTo('a@example.net'));
		send(mailTo('b@example.net'));
		expect(packets).toEqual([envelopeTo('a@example.net')]);
		await hear('250 Ok', '250 Ok', '354 Go');
		expect(packets[1]).toBe(`to a@example.net\r\n.\r\n${envelopeTo('b@example.net')}`);
		await hear('250 2.0.0 Taken', '250 Ok', '250 Ok', '354 Go');
		expect(packets.slice(2)).toEqual(['to b@example.net\r\n.\r\n']);
		expect(ended).toMatchObject([{ kind: 'accepted', reply: { code: 250, text: 'Taken' } }, undefined]);
	});

	it('gets the next envelope while the previous message awaits its answer', async () => {
		const { send, hear, packets, waits } = talk();
		send(mailTo('a@example.net'));
		await hear('250 Ok', '250 Ok', '354 Go');
		send(mailTo('b@example.net'));
		expect(packets[2]).toBe(envelopeTo('b@example.net'));
		expect(waits.at(-1)).toBe('answer');
	});

	it('may split its replies into packets', async () => {
		const said =
			'250-2.1.0 One\r\n250 2.1.0 two\r\n250 2.1.5 Ok\r\n354 Go\r\n250 2.0.0 Taken für a\r\n550 5.1.0 No\r\n503 No\r\n503 No\r\n';
		// Each split has a cut after the 354, because the next replies answer the body, which is sent only then.
		const whole = Buffer.from(said);
		const goAhead = whole.indexOf('354 Go\r\n') + 8;
		const cut = fc.uniqueArray(fc.integer({ min: 1, max: whole.length - 1 }), { maxLength: 20 });
		await fc.assert(
			fc.asyncProperty(cut, async (places) => {
				const { send, dialogue, ended } = talk();
				send(mailTo('a@example.net'));
				send(mailTo('b@example.net'));
				let from = 0;
				for (const to of [...new Set([...places, goAhead, whole.length])].sort((a, b) => a - b)) {
					dialogue.receive(whole.subarray(from, to));
					from = to;
				}
				await Promise.resolve();
				await Promise.resolve();
				expect(ended).toMatchObject([
					{ kind: 'accepted', reply: { code: 250, enhanced: '2.0.0', text: 'Taken für a' } },
					{ kind: 'refused', reply: { phase: 'mail', code: 550, enhanced: '5.1.0' } },
				]);
			}),
		);
	});

	it('that accepts DATA but no recipient gets an empty body, and the connection continues', async () => {
		const { send, hear, packets, ended, state } = talk();
		send(mailTo('a@example.net'));
		send(mailTo('b@example.net'));
		await hear('250 Ok', '550 5.1.1 No such user', '354 Go');
		expect(ended[0]).toMatchObject({ kind: 'refused', reply: { phase: 'rcpt', code: 550 } });
		expect(packets[1]).toBe(`.\r\n${envelopeTo('b@example.net')}`);
		await hear('554 5.5.1 No recipients', '250 Ok', '250 Ok', '354 Go');
		await hear('250 Taken');
		expect(ended[1]).toMatchObject({ kind: 'accepted' });
		expect(state.isClosed).toBe(false);
	});

	it('that refuses both recipient and DATA gets RSET before the next envelope', async () => {
		const { send, hear, packets, ended } = talk();
		send(mailTo('a@example.net'));
		send(mailTo('b@example.net'));
		await hear('250 Ok', '450 4.2.0 Later', '503 5.5.1 No recipients');
		expect(ended[0]).toMatchObject({ kind: 'refused', reply: { phase: 'rcpt', code: 450 } });
		expect(packets[1]).toBe(`RSET\r\n${envelopeTo('b@example.net')}`);
	});

	it('that refuses the recipient but accepts a Cc address is disconnected before the body', async () => {
		const { send, hear, packets, ended, state } = talk();
		send(mailTo('a@example.net', ['c@example.net']));
		send(mailTo('b@example.net'));
		await hear('250 Ok', '550 5.1.1 No such user', '250 Ok', '354 Go');
		expect(ended).toMatchObject([{ kind: 'refused', reply: { phase: 'rcpt', code: 550 } }, null]);
		expect([state.isClosed, packets.length]).toEqual([true, 1]);
	});

	it('that refuses one of three Cc addresses still gets the mail, and the result names this address', async () => {
		const { send, hear, ended } = talk();
		send(mailTo('a@example.net', ['c@example.net', 'd@example.net', 'e@example.net']));
		await hear('250 Ok', '250 Ok', '250 Ok', '450 4.2.0 Later', '250 Ok', '354 Go');
		await hear('250 Taken');
		expect(ended[0]).toMatchObject({
			kind: 'accepted',
			refusedCopies: [{ to: 'd@example.net', reply: { phase: 'rcpt', code: 450 } }],
		});
	});
});

describe('replies that do not match the commands', () => {
	it.each([
		['one too many', ['250 Ok', '250 Ok', '250 Ok', '354 Go'], 'data'],
		['one too few', ['250 Ok', '354 Go'], 'rcpt'],
		['a reply to DATA that is not 354', ['250 Ok', '250 Ok', '250 Ok'], 'data'],
	])('make the client close the connection before it sends a body: %s', async (_name, lines, phase) => {
		const { send, hear, packets, ended, state } = talk();
		send(mailTo('a@example.net'));
		send(mailTo('b@example.net'));
		await hear(...lines);
		expect(ended).toMatchObject([{ kind: 'broken', reply: { phase } }, null]);
		expect([state.isClosed, packets.length]).toEqual([true, 1]);
	});

	it('make the client close the connection if they accept a body that the client has not sent', async () => {
		const { send, hear, packets, ended, state } = talk();
		send(mailTo('a@example.net'));
		await hear('250 Ok', '250 Ok', '354 Go', '250 Taken, I am sure');
		expect(ended[0]).toMatchObject({ kind: 'broken', reply: { phase: 'body' } });
		expect([state.isClosed, packets.length]).toEqual([true, 1]);
	});

	it('make the client close the connection after an extra reply, but change no earlier outcome', async () => {
		const { send, hear, ended, state, dialogue } = talk();
		send(mailTo('a@example.net'));
		await hear('250 Ok', '250 Ok', '354 Go');
		await hear('250 Taken', '250 Taken again');
		expect(ended[0]).toMatchObject({ kind: 'accepted' });
		expect(state.isClosed).toBe(true);
		expect(await dialogue.send(mailTo('b@example.net'))).toBeNull();
	});

	it('make the client close the connection if a very long line does not end', async () => {
		const { send, hear, ended, state } = talk();
		send(mailTo('a@example.net'));
		await hear('250 Ok', `250-${'x'.repeat(70_000)}`);
		expect(ended[0]).toMatchObject({ kind: 'broken', reply: { phase: 'rcpt' } });
		expect(state.isClosed).toBe(true);
	});
});

describe('a connection that ends', () => {
	it('after the final dot makes one mail uncertain, and leaves the next mail unsent', async () => {
		const { send, hear, dialogue, ended } = talk();
		send(mailTo('a@example.net'));
		send(mailTo('b@example.net'));
		await hear('250 Ok', '250 Ok', '354 Go');
		dialogue.ended('reset');
		await hear();
		expect(ended).toMatchObject([{ kind: 'broken', reply: { phase: 'answer', text: 'reset' } }, null]);
	});

	it('with 421 after one mail leaves the next mail unsent', async () => {
		const { send, hear, ended, state } = talk();
		send(mailTo('a@example.net'));
		send(mailTo('b@example.net'));
		await hear('250 Ok', '250 Ok', '354 Go');
		await hear('421 4.7.0 Enough');
		expect(ended).toMatchObject([{ kind: 'refused', reply: { phase: 'answer', code: 421 } }, null]);
		expect(state.isClosed).toBe(true);
	});

	it('in the middle of a refusal gives the mail the result "refused"', async () => {
		const { send, hear, dialogue, ended } = talk([]);
		send(mailTo('a@example.net'));
		await hear('250 Ok');
		dialogue.receive(Buffer.from('550 5.1.1 No such us'));
		dialogue.ended('reset');
		await hear();
		expect(ended[0]).toMatchObject({ kind: 'refused', reply: { phase: 'rcpt', code: 550 } });
	});

	it('in the middle of a long body gives the mail the result "broken" in the phase "body"', async () => {
		const { send, hear, dialogue, ended, packets, state } = talk();
		send({ ...mailTo('a@example.net'), bytes: Buffer.alloc(200_000, `${'x'.repeat(70)}\r\n`) });
		state.isFull = true;
		await hear('250 Ok', '250 Ok', '354 Go');
		expect(packets).toHaveLength(2);
		dialogue.drained();
		dialogue.ended('reset');
		await hear();
		expect(ended[0]).toMatchObject({ kind: 'broken', reply: { phase: 'body' } });
	});
});

describe('a server without PIPELINING', () => {
	it('gets one command at a time', async () => {
		const { send, hear, packets, ended } = talk([]);
		send(mailTo('a@example.net'));
		send(mailTo('b@example.net'));
		for (const reply of ['250 Ok', '250 Ok', '354 Go', '250 Taken', '550 No', '250 Reset']) await hear(reply);
		expect(packets).toEqual([
			'MAIL FROM:<news@example.com>\r\n',
			'RCPT TO:<a@example.net>\r\n',
			'DATA\r\n',
			'to a@example.net\r\n.\r\n',
			'MAIL FROM:<news@example.com>\r\n',
			'RSET\r\n',
		]);
		expect(ended.map((each) => each?.kind)).toEqual(['accepted', 'refused']);
	});
});

describe('the extensions of a server', () => {
	it('are used: SIZE, 8BITMIME and SMTPUTF8', () => {
		const { send, packets } = talk(['SIZE 1000', '8BITMIME', 'SMTPUTF8']);
		send({ ...mailTo('bé@example.net'), bytes: Buffer.from('é\r\n') });
		expect(packets).toEqual(['MAIL FROM:<news@example.com> SMTPUTF8 BODY=8BITMIME SIZE=4\r\n']);
	});

	it('prevent the sending of a message that exceeds SIZE, unless SIZE is 0', async () => {
		const large = { ...mailTo('a@example.net'), bytes: Buffer.alloc(20, 'x') };
		expect(await talk(['SIZE 10']).dialogue.send(large)).toMatchObject({ kind: 'unsendable' });
		const { send, packets } = talk(['SIZE 0']);
		send(large);
		expect(packets).toEqual(['MAIL FROM:<news@example.com> SIZE=20\r\n']);
	});
});

it('an address with a line break cannot add a command', async () => {
	const { dialogue, packets } = talk();
	const mail = mailTo('a@example.net>\r\nRCPT TO:<evil@example.net');
	expect(await dialogue.send(mail)).toMatchObject({ kind: 'unsendable' });
	expect(packets).toEqual([]);
});
