import { expect, it } from 'vitest';
import {
	explained,
	ingested,
	keptAbout,
	messageTo,
	sendTo,
	subscriberOf,
} from '../support/mail-server-trial.js';
import { noOpenSmtpd, startOpenSmtpd } from '../support/opensmtpd.js';
import { mailServerSuite } from './mail-server.suite.js';

mailServerSuite({
	name: 'OpenSMTPD',
	why: noOpenSmtpd,
	start: startOpenSmtpd,
	unknown: { code: 550, enhanced: null, text: 'Invalid recipient' },
	own: (trial) => {
		it('gives up after its time and calls that a delay: a soft bounce', async () => {
			const { kept } = trial();
			expect(await sendTo(kept, 'busy@example.info')).toBe(0);
			const mail = await keptAbout(trial(), 'busy@example.info');
			expect(mail).toMatch(/^Action: delayed\r?$/m);
			expect(await explained(kept, mail)).toMatchObject({
				kind: 'bounce',
				recipients: [{ action: 'failed', status: '4.4.7', hard: false, diagnostic: 'Envelope expired' }],
			});
			expect(await ingested(kept, mail)).toMatchObject({ bounces: 1 });
			expect(await messageTo(kept, 'busy@example.info')).toMatchObject({ state: 'failed' });
			expect(await subscriberOf(kept, 'busy@example.info')).toMatchObject({ is_active: true });
		});

		it('says "524 5.2.4" for an alias that does not exist: no address code, the address stays', async () => {
			const { kept } = trial();
			expect(await sendTo(kept, 'lost@example.edu')).toBe(9);
			expect(await messageTo(kept, 'lost@example.edu')).toMatchObject({
				state: 'failed',
				delivery_attempts: [{ phase: 'rcpt', code: 524, enhanced: '5.2.4' }],
			});
			expect(await subscriberOf(kept, 'lost@example.edu')).toMatchObject({ is_active: true });
		});
	},
});
