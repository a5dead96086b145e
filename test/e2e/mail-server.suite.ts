import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import {
	explained,
	ingested,
	keptAbout,
	type MailServerTrial,
	messageTo,
	openTrial,
	sendTo,
	subscriberOf,
} from '../support/mail-server-trial.js';
import type { MailServer, MailServerOptions } from '../support/postfix.js';

export interface MailServerSubject {
	name: string;
	/** Why it cannot be run here; null: it can. */
	why: string | null;
	start(options: MailServerOptions): Promise<MailServer>;
	unknown: { code: number; enhanced: string | null; text: string };
	/** Tests of this server alone. */
	own(trial: () => MailServerTrial): void;
}

export function mailServerSuite({ name, why, start, unknown, own }: MailServerSubject): void {
	describe.skipIf(why !== null)(why === null ? name : `${name} (${why})`, () => {
		let trial: MailServerTrial;
		beforeAll(async () => {
			trial = await openTrial(start);
		});
		afterAll(() => trial?.close());

		it('takes a mail', async () => {
			const { kept, server } = trial;
			expect(await sendTo(kept, 'ann@example.net')).toBe(0);
			const message = await messageTo(kept, 'ann@example.net');
			expect(message).toMatchObject({ state: 'sent', delivery_attempts: [{ phase: 'answer', code: 250 }] });
			await eventually(async () => expect(await server.mails('ann')).toHaveLength(1));
			const { id } = message as { id: string };
			expect((await server.mails('ann'))[0]).toContain(`Message-ID: <${id}@example.com>`);
			expect((await server.mails('ann'))[0]).toMatch(
				/^Return-path: <news\+[a-z2-7]{48}@kept\.example\.com>/im,
			);
		});

		it('refuses an unknown address at RCPT: a hard bounce at once', async () => {
			const { kept } = trial;
			expect(await sendTo(kept, 'gone@example.net')).toBe(9);
			const { code, enhanced } = unknown;
			expect(await messageTo(kept, 'gone@example.net')).toMatchObject({
				state: 'bounced',
				attempts: 1,
				delivery_attempts: [
					{ outcome: 'bounced', phase: 'rcpt', code, enhanced, text: expect.stringContaining(unknown.text) },
				],
			});
			expect(await subscriberOf(kept, 'gone@example.net')).toMatchObject({
				is_active: false,
				disable_reason: 'HARDBOUNCED',
			});
		});

		it('defers a mail, which stays queued, and keeps the address', async () => {
			const { kept } = trial;
			expect(await sendTo(kept, 'bob@example.net')).toBe(0);
			expect(await messageTo(kept, 'bob@example.net')).toMatchObject({
				state: 'deferred',
				due_at: expect.any(String),
				delivery_attempts: [{ outcome: 'deferred', phase: 'rcpt', code: 451, enhanced: '4.7.1' }],
			});
			expect(await subscriberOf(kept, 'bob@example.net')).toMatchObject({ is_active: true });
		});

		it('sends a bounce by SMTP: message, subscriber and report show it', async () => {
			const { served, server, servedLog } = trial;
			// `serve` sends it: a bounce that is faster than the end of `send` would be the exit code of `send`.
			expect(await sendTo(served, 'ann@example.org', { options: ['--no-wait'] })).toBe(0);
			const reason = async () => {
				const { disable_reason } = (await subscriberOf(served, 'ann@example.org')) as Record<string, unknown>;
				return disable_reason ?? `${await server.log()}${servedLog()}`;
			};
			await eventually(async () => expect(await reason()).toBe('HARDBOUNCED'));
			await eventually(async () => expect(servedLog()).toContain('"bounce_smtp":"bounce"'));
			expect(await served.json(['messages', 'list', '--status', 'bounced'])).toMatchObject([
				{ to: 'ann@example.org', last_reply: expect.stringContaining('5.1.1') },
			]);
			expect(await served.json(['report'])).toMatchObject({ total: { sent: 1, hardbounced_percent: 100 } });
		});

		it.each([
			{ to: 'unknown@example.org', status: '5.1.1', reply_code: 550, words: 'No such user here', hard: true },
			{ to: 'full@example.org', status: '5.2.2', reply_code: 552, words: 'Mailbox full', hard: false },
			// The server's own "5.0.0", for an answer that had none, says nothing: the words decide.
			{ to: 'plain@example.org', status: '5.0.0', reply_code: 550, words: 'No such user here', hard: true },
		])('sends a bounce about $to that explain reads and ingest takes in: hard = $hard', async ({
			to,
			status,
			reply_code,
			words,
			hard,
		}) => {
			const { kept } = trial;
			expect(await sendTo(kept, to)).toBe(0);
			const { id } = (await messageTo(kept, to)) as { id: string };
			const mail = await keptAbout(trial, to);
			expect(await explained(kept, mail)).toMatchObject({
				kind: 'bounce',
				reporting_mta: 'mx.example.net',
				recipients: [
					{
						address: to,
						action: 'failed',
						status,
						reply_code,
						diagnostic: expect.stringContaining(words),
						hard,
						form: 'RFC 3464',
					},
				],
				returned: { message_id: `${id}@example.com`, subject: 'Hello', to: [to] },
			});
			expect(await ingested(kept, mail)).toMatchObject({ read: 1, bounces: 1 });
			expect(await messageTo(kept, to)).toMatchObject({ state: hard ? 'bounced' : 'failed' });
			const disable_reason = hard ? 'HARDBOUNCED' : null;
			expect(await subscriberOf(kept, to)).toMatchObject({ is_active: !hard, disable_reason });
		});

		it('sends one bounce about two of one mail: each stands or falls by his own code', async () => {
			const { kept } = trial;
			expect(await sendTo(kept, 'full.to@example.org', { cc: ['copy@example.org'] })).toBe(0);
			const mail = await keptAbout(trial, 'copy@example.org');
			expect(await explained(kept, mail)).toMatchObject({
				recipients: expect.arrayContaining([
					expect.objectContaining({ address: 'full.to@example.org', hard: false }),
					expect.objectContaining({ address: 'copy@example.org', hard: true }),
				]),
			});
			expect(await ingested(kept, mail)).toMatchObject({ bounces: 1 });
			expect(await subscriberOf(kept, 'full.to@example.org')).toMatchObject({ is_active: true });
			expect(await subscriberOf(kept, 'copy@example.org')).toMatchObject({ disable_reason: 'HARDBOUNCED' });
		});

		it('sends a bounce that matches by its return path alone, without a Message-ID of ours', async () => {
			const { kept } = trial;
			expect(await sendTo(kept, 'bare@example.org')).toBe(0);
			const mail = await keptAbout(trial, 'bare@example.org');
			const bare = mail.replace(/^Message-ID: <[^>]*@example\.com>\r?\n/im, '');
			expect(await explained(kept, bare)).toMatchObject({ returned: { message_id: null } });
			expect(await ingested(kept, bare)).toMatchObject({ bounces: 1 });
			expect(await subscriberOf(kept, 'bare@example.org')).toMatchObject({ disable_reason: 'HARDBOUNCED' });
		});

		it('keeps a Maildir that ingest reads', async () => {
			const { kept, server } = trial;
			expect(await sendTo(kept, 'dir@example.org')).toBe(0);
			await keptAbout(trial, 'dir@example.org');
			await kept.json(['engine', 'bounces', 'ingest', server.maildir('kept')]);
			expect(await subscriberOf(kept, 'dir@example.org')).toMatchObject({ disable_reason: 'HARDBOUNCED' });
			expect(await server.mails('kept')).toEqual([]);
		});

		own(() => trial);
	});
}
