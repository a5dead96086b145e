// Reports whose fields say "delayed": most are warnings, and one server writes so of what it has given up.
import { describe, expect, it } from 'vitest';
import { readReport } from '../../../src/delivery/bounces/ingest.js';
import { dsn, informal } from './build.js';

const openSmtpd = (told: string, status: string) => {
	const notice = `    A message is delayed for more than 0 seconds for the following
    list of recipients:

ann@example.org: ${told}

    Please note that this is only a temporary failure report.
    The message is kept in the queue for up to 7 days.
    You DO NOT NEED to re-send the message to these recipients.

    Below is a copy of the original message:
`;
	const fields = `Reporting-MTA: dns; mx.example.net

Final-Recipient: rfc822; ann@example.org
Action: delayed
Status: ${status}`;
	return { notice, mail: dsn(fields, { notice, returned: 'To: ann@example.org\nSubject: Hello' }) };
};

describe('a report of a delay', () => {
	it('is a soft bounce if OpenSMTPD says that the envelope expired', () => {
		const { mail, notice } = openSmtpd('Envelope expired', '4.4.7');
		const recipient = {
			address: 'ann@example.org',
			action: 'failed',
			diagnostic: 'Envelope expired',
			hard: false,
		};
		expect(readReport(mail)).toMatchObject({
			kind: 'bounce',
			recipients: [{ ...recipient, status: '4.4.7' }],
		});
		expect(readReport(informal(notice))).toMatchObject({ kind: 'bounce', recipients: [recipient] });
	});

	it.each([
		['450 4.2.1 later', '4.2.1'],
		['Network error on destination MXs', '4.0.0'],
		['450 4.4.7 <ann@example.org>: Envelope expired, they say', '4.4.7'],
	])('is a warning while delivery is tried: %s', (told, status) => {
		const { mail, notice } = openSmtpd(told, status);
		const recipient = { action: 'delayed', diagnostic: told };
		expect(readReport(mail)).toMatchObject({ kind: 'delivery_notice', recipients: [recipient] });
		expect(readReport(informal(notice))).toMatchObject({ kind: 'delivery_notice', recipients: [recipient] });
	});
});
