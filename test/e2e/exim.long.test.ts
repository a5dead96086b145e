import { expect, it } from 'vitest';
import { noExim, startExim } from '../support/exim.js';
import {
	explained,
	ingested,
	keptAbout,
	messageTo,
	sendTo,
	subscriberOf,
} from '../support/mail-server-trial.js';
import { mailServerSuite } from './mail-server.suite.js';

mailServerSuite({
	name: 'Exim',
	why: noExim,
	start: startExim,
	unknown: { code: 550, enhanced: '5.1.1', text: 'Unknown user' },
	own: (trial) => {
		it('says "Unrouteable address" where nobody told it better: no address code, the address stays', async () => {
			const { kept } = trial();
			expect(await sendTo(kept, 'lost@example.net')).toBe(9);
			expect(await messageTo(kept, 'lost@example.net')).toMatchObject({
				state: 'failed',
				delivery_attempts: [{ phase: 'rcpt', code: 550, enhanced: null, text: 'Unrouteable address' }],
			});
			expect(await subscriberOf(kept, 'lost@example.net')).toMatchObject({ is_active: true });
		});

		it('fails by itself after it took the mail: a bounce without any code, a soft one', async () => {
			const { kept } = trial();
			expect(await sendTo(kept, 'late@example.edu')).toBe(0);
			const mail = await keptAbout(trial(), 'late@example.edu');
			expect(await explained(kept, mail)).toMatchObject({
				kind: 'bounce',
				recipients: [{ address: 'late@example.edu', status: '5.0.0', hard: false }],
			});
			expect(await ingested(kept, mail)).toMatchObject({ bounces: 1 });
			expect(await subscriberOf(kept, 'late@example.edu')).toMatchObject({ is_active: true });
		});
	},
});
