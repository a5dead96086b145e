// A real OpenSMTPD takes our mail and sends its bounces back. Where it comes from: test/support/private-root.ts.
import { expect, it } from 'vitest';
import { messageTo, sendTo, subscriberOf } from '../support/mail-server-trial.js';
import { noOpenSmtpd, startOpenSmtpd } from '../support/opensmtpd.js';
import { mailServerSuite } from './mail-server.suite.js';

mailServerSuite({
	name: 'OpenSMTPD',
	why: noOpenSmtpd,
	start: startOpenSmtpd,
	unknown: { code: 550, enhanced: null, text: 'Invalid recipient' },
	own: (trial) => {
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
