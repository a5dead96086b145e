import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { formatSecret, refuseSignature, signatureOf, signedHeaders } from '../../src/api/webhook-calls.js';

const published = {
	secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
	signed: { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1614265330, body: '{"test": 2432232314}' },
	signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};
const other = formatSecret(Buffer.alloc(32, 9).toString('base64url'));
const { secret, signed } = published;
const body = Buffer.from(signed.body);
const now = signed.timestamp;
const headers = signedHeaders(signed, [secret]);

describe('a signature of Standard Webhooks', () => {
	it('equals the published example', () => {
		expect(signatureOf(signed, [secret])).toBe(published.signature);
	});

	it('contains one value for each current secret', () => {
		const both = signedHeaders(signed, [other, secret]);
		expect(both['webhook-signature']?.split(' ')).toHaveLength(2);
		for (const known of [other, secret])
			expect(refuseSignature({ headers: both, body, secrets: [known], now })).toBeNull();
	});

	it('is accepted by the reference implementation, and mailctl accepts that implementation’s signature', () => {
		fc.assert(
			fc.property(
				fc.uint8Array({ minLength: 24, maxLength: 64 }),
				fc.string(),
				fc.uuid(),
				(key, text, id) => {
					const reference = new Webhook(formatSecret(Buffer.from(key).toString('base64url')));
					const timestamp = Math.floor(Date.now() / 1000);
					const own = formatSecret(Buffer.from(key).toString('base64url'));
					const json = JSON.stringify({ text });
					const mine = signedHeaders({ id, timestamp, body: json }, [own]);
					expect(reference.verify(json, mine)).toEqual({ text });
					const theirs = {
						...mine,
						'webhook-signature': reference.sign(id, new Date(timestamp * 1000), json),
					};
					const received = { headers: theirs, body: Buffer.from(json), secrets: [own], now: timestamp };
					expect(refuseSignature(received)).toBeNull();
				},
			),
			{ numRuns: 200 },
		);
	});

	it.each([
		['another secret', { secrets: [other] }, 'the signature does not match the secret'],
		[
			'a changed body',
			{ body: Buffer.from('{"test": 2432232315}') },
			'the signature does not match the secret',
		],
		[
			'another id',
			{ headers: { ...headers, 'webhook-id': 'msg_2' } },
			'the signature does not match the secret',
		],
		[
			'another signature version',
			{ headers: { ...headers, 'webhook-signature': 'v2,g0hM' } },
			'the signature does not match the secret',
		],
		['a timestamp long ago', { now: now + 301 }, 'webhook-timestamp 1614265330 is over 5 minutes off'],
		['a timestamp in the future', { now: now - 301 }, 'webhook-timestamp 1614265330 is over 5 minutes off'],
		[
			'a timestamp that is not a number',
			{ headers: { ...headers, 'webhook-timestamp': 'x' } },
			'webhook-timestamp x is over 5 minutes off',
		],
		[
			'no signature',
			{ headers: { 'webhook-id': 'm', 'webhook-timestamp': '1' } },
			'not signed: webhook-id, webhook-timestamp or webhook-signature is missing',
		],
	])('is rejected with %s', (_what, changed, why) => {
		expect(refuseSignature({ headers, body, secrets: [secret], now, ...changed })).toBe(why);
	});
});
