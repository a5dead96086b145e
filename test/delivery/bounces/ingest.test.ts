import { describe, expect, it } from 'vitest';
import { emailKey } from '../../../src/api/address.js';
import { type IngestOptions, ingestMail } from '../../../src/delivery/bounces/ingest.js';
import { createVerp } from '../../../src/delivery/bounces/verp.js';
import type { ReturnedReport } from '../../../src/engine/rules/outcomes.js';
import type { ReportOutcome } from '../../../src/store/store.js';
import { dsn, mail } from './build.js';

const verp = createVerp('bounces@example.com', [
	{ id: 1, secret: Buffer.alloc(32, 1).toString('base64url') },
]);
const message = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';
const another = '5f0c1c55-9a0e-4c5b-8d3e-2f8f0d1c9b7a';
const path = verp?.addressFor(message) ?? '';
const otherPath = verp?.addressFor(another) ?? '';
const status =
	'Reporting-MTA: dns; mx.example.org\n\nOriginal-Recipient: rfc822; Ann@example.org\nFinal-Recipient: rfc822; ann@inner.example.org\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 unknown\n';

function store(...answers: readonly ReportOutcome[]) {
	const asked: ReturnedReport[] = [];
	const slept: number[] = [];
	const options: IngestOptions = {
		verp,
		clock: { now: () => 7 },
		record: async (report) => {
			asked.push(report);
			return answers[asked.length - 1] ?? answers.at(-1) ?? { kind: 'unmatched' };
		},
		sleep: async (ms) => void slept.push(ms),
	};
	const ingest = (bytes: Buffer, returnPath: string | null = null) =>
		ingestMail({ bytes, returnPath }, options);
	return { asked, slept, ingest, options };
}

const recorded: ReportOutcome = {
	kind: 'recorded',
	effect: 'hard_bounce',
	address: emailKey('ann@example.org'),
};

describe('a returned mail', () => {
	it('is matched to its message by the return path in its envelope, not by its content', async () => {
		const { asked, ingest } = store(recorded);
		const bytes = dsn(status, { returned: `Return-Path: <${otherPath}>\nMessage-ID: <${another}@x>` });
		expect(await ingest(bytes, message)).toBe('bounce');
		expect(asked).toEqual([
			{
				message,
				matched: 'return_path',
				sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
				at: 7,
				kind: 'bounce',
				recipients: [
					{
						addresses: ['ann@inner.example.org', 'ann@example.org'],
						hard: true,
						smtp_code: '5.1.1',
						diagnostic: '550 5.1.1 unknown',
					},
				],
			},
		]);
	});

	it.each([
		['Status: 5.0.0\nDiagnostic-Code: smtp; 550 no such user', '550'],
		['Status: 5.0.0', '5.0.0'],
		['Status: 5.2.2\nDiagnostic-Code: smtp; 552 full', '5.2.2'],
	])('with %j is recorded with the code %s', async (fields, smtp_code) => {
		const { asked, ingest } = store(recorded);
		await ingest(dsn(status.replace(/Status:.*/s, `${fields}\n`)), message);
		expect(asked).toMatchObject([{ recipients: [{ smtp_code }] }]);
	});

	it('is matched to its message by an upper-case return path in the returned message', async () => {
		const { asked, ingest } = store(recorded);
		await ingest(dsn(status, { returned: `Return-Path: <${path.toUpperCase()}>\nSubject: Hi` }));
		expect(asked).toMatchObject([{ message, matched: 'return_path' }]);
	});

	it('is matched to its message by Message-ID if the signature of its return path is invalid', async () => {
		const { asked, ingest } = store(recorded);
		const returned = `Return-Path: <bounces+${'a'.repeat(48)}@example.com>\nMessage-ID: <${message.toUpperCase()}@example.com>`;
		await ingest(dsn(status, { returned }));
		expect(asked).toMatchObject([{ message, matched: 'message_id' }]);
	});

	it('matched only by Message-ID is a soft bounce if mailctl signs return paths, otherwise a hard bounce', async () => {
		const returned = `Message-ID: <${message}@example.com>\nSubject: Hi`;
		const signed = store(recorded);
		await signed.ingest(dsn(status, { returned }));
		expect(signed.asked[0]?.recipients.map(({ hard }) => hard)).toEqual([false]);
		const unsigned = store(recorded);
		await ingestMail(
			{ bytes: dsn(status, { returned }), returnPath: null },
			{ ...unsigned.options, verp: null },
		);
		expect(unsigned.asked[0]?.recipients.map(({ hard }) => hard)).toEqual([true]);
	});

	it('is not recorded if only the returned message names a recipient', async () => {
		const { asked, ingest } = store(recorded);
		const silent = 'Final-Recipient: LOCAL; root\nAction: failed\nStatus: 5.1.1';
		expect(await ingest(dsn(silent, { returned: 'To: ann@example.org\nSubject: Hi' }), message)).toBe(
			'notice',
		);
		expect(asked).toEqual([]);
	});

	it('is not looked up in the store if mailctl did not send the message in it', async () => {
		const { asked, ingest } = store(recorded);
		expect(await ingest(dsn(status, { returned: 'Message-ID: <1234@example.net>\nSubject: Hi' }))).toBe(
			'unmatched',
		);
		expect(asked).toEqual([]);
	});

	it('has no effect if it is an automatic reply, a notice of a delay, or an ordinary mail', async () => {
		const { asked, ingest } = store(recorded);
		const header = ['From: ann@example.org', `To: ${path}`];
		expect(await ingest(mail([...header, 'Subject: Lunch'], 'At noon.'), message)).toBe('not_report');
		const away = [...header, 'Subject: Away', 'Auto-Submitted: auto-replied'];
		expect(await ingest(mail(away, 'Back soon.'), message)).toBe('auto_reply');
		expect(await ingest(dsn(status.replace('Action: failed', 'Action: delayed')), message)).toBe('notice');
		expect(asked).toEqual([]);
	});

	it('that names a failed and a delivered recipient is recorded only for the failed one', async () => {
		const { asked, ingest } = store(recorded);
		const both = `${status}\nFinal-Recipient: rfc822; bob@example.org\nAction: relayed\nStatus: 2.0.0\n`;
		await ingest(dsn(both), message);
		expect(asked[0]?.recipients.map(({ addresses }) => addresses[0])).toEqual(['ann@inner.example.org']);
	});

	it('is recorded after a short wait if its message is still being sent', async () => {
		const { asked, slept, ingest } = store({ kind: 'in_flight' }, { kind: 'in_flight' }, recorded);
		expect(await ingest(dsn(status), message)).toBe('bounce');
		expect({ asked: asked.length, slept }).toEqual({ asked: 3, slept: [250, 250] });
	});

	it('has the result in_flight if its message is still being sent after 20 waits', async () => {
		const { slept, ingest } = store({ kind: 'in_flight' });
		expect(await ingest(dsn(status), message)).toBe('in_flight');
		expect(slept).toHaveLength(20);
	});
});
