import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
	decodeKey,
	generateKey,
	parseKey,
	recordNameOf,
	recordOf,
	zoneLineOf,
} from '../../../src/delivery/dkim/keys.js';
import {
	relaxedHeader,
	type SigningKey,
	signFields,
	signMessage,
	signMessageHere,
} from '../../../src/delivery/dkim/sign.js';
import { dkimVerifiers } from '../../support/dkim-verifiers.js';

const domain = 'example.com';
const header = [
	'From: News <news@example.com>',
	'To: Ann <ann@example.net>',
	'Cc: bob@example.net',
	'Reply-To: office@example.com',
	'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= and a subject that is long enough',
	' to be folded',
	'Date: Fri, 11 Jul 2003 21:00:37 -0700',
	'Message-ID: <1@example.com>',
	'MIME-Version: 1.0',
	'Content-Type: text/plain; charset=utf-8',
	'Content-Transfer-Encoding: 7bit',
	'List-Unsubscribe: <https://mail.example.com/u/token>',
	'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
	'X-Mailer: unsigned',
];
const body = ['Hello  Ann, ', '.a line that begins with a dot', '', '\tthe end', '', ''];
const message = Buffer.from([...header, '', ...body].join('\r\n'));

async function makeKeys() {
	const materials = { r1: await generateKey('rsa'), e1: await generateKey('ed25519') };
	const keys = Object.entries(materials).map(
		([selector, { type, secret }]): SigningKey => ({ domain, selector, type, key: decodeKey(secret) }),
	);
	const records = Object.fromEntries(
		Object.entries(materials).map(([selector, material]) => [
			recordNameOf({ domain, selector }),
			recordOf(material),
		]),
	);
	return { keys, records };
}

const names = header.filter((line) => !line.startsWith(' ')).map((line) => line.slice(0, line.indexOf(':')));
const isSigned = (name: string) => name !== 'X-Mailer';
const change = (text: string, from: RegExp, to: string) => text.replace(from, to);

function tamperings(signed: Buffer): Record<string, Buffer> {
	const text = signed.toString('latin1');
	const changed: Record<string, string> = {
		'a word of the body': change(text, /Hello/, 'Hallo'),
		'a line at the end': `${text}buy more\r\n`,
		'a dot less': change(text, /\r\n\.a line/, '\r\na line'),
		'another signer': change(text, /d=example\.com/, 'd=example.org'),
	};
	for (const name of names.filter(isSigned)) {
		changed[`${name} changed`] = change(text, new RegExp(`^${name}: (?=\\S)`, 'm'), `${name}: x`);
		changed[`${name} removed`] = change(text, new RegExp(`^${name}: .*\\r\\n(?:[ \\t].*\\r\\n)*`, 'm'), '');
		changed[`a second ${name}`] = change(text, /^From: /m, `${name}: added\r\nFrom: `);
	}
	return Object.fromEntries(Object.entries(changed).map(([what, one]) => [what, Buffer.from(one, 'latin1')]));
}

describe('a signed message', () => {
	it('begins with a signature for each key, and is the same each time', async () => {
		const { keys } = await makeKeys();
		const signed = await signMessage(message, keys);
		expect(signed.subarray(-message.length).equals(message)).toBe(true);
		const added = signed.toString('latin1', 0, signed.length - message.length);
		expect(added.match(/^DKIM-Signature: v=1; a=(?:rsa|ed25519)-sha256; /gm)).toHaveLength(2);
		expect(added.split('\r\n').every((line) => line.length <= 78)).toBe(true);
		expect((await signMessage(message, keys)).equals(signed)).toBe(true);
		expect(signMessageHere(message, keys).equals(signed)).toBe(true);
	});

	it('equals the original message if there are no keys', async () => {
		expect(await signMessage(message, [])).toBe(message);
	});
});

describe.each(dkimVerifiers)('a signature checked by $name (needs $missing)', ({ missing, verify }) => {
	it.skipIf(missing !== null)('is valid with an RSA key, an Ed25519 key, or both', async () => {
		const { keys, records } = await makeKeys();
		const messages = await Promise.all(
			[keys.slice(0, 1), keys.slice(1), keys].map((some) => signMessage(message, some)),
		);
		expect(verify(records, messages)).toEqual([true, true, true]);
	});

	it.skipIf(missing !== null)('is valid after a relay folds and adds fields', async () => {
		const { keys, records } = await makeKeys();
		const text = (await signMessage(message, keys)).toString('latin1');
		const relayed = `Received: by mx.example.net; Fri, 11 Jul 2003 21:00:37 -0700\r\n${change(text, /enough\r\n to/, 'enough to')}`;
		expect(verify(records, [Buffer.from(relayed, 'latin1')])).toEqual([true]);
	});

	it.skipIf(missing !== null)('is invalid after any tampering, with RSA and with Ed25519', async () => {
		const { keys, records } = await makeKeys();
		for (const key of keys) {
			const tampered = tamperings(await signMessage(message, [key]));
			const verdicts = verify(records, Object.values(tampered));
			expect(Object.keys(tampered).filter((_what, index) => verdicts[index])).toEqual([]);
		}
	});
});

describe('the published example of RFC 8463', () => {
	it('has the Ed25519 signature that mailctl makes for the same mail', async () => {
		const pkcs8 = `302e020100300506032b657004220420${Buffer.from('nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=', 'base64').toString('hex')}`;
		const key = createPrivateKey({ key: Buffer.from(pkcs8, 'hex'), format: 'der', type: 'pkcs8' });
		const signature = await signFields(
			{ type: 'ed25519', key },
			relaxedHeader([
				'From: Joe SixPack <joe@football.example.com>',
				'To: Suzie Q <suzie@shopping.example.net>',
				'Subject: Is dinner ready?',
				'Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)',
				'Message-ID: <20030712040037.46341.5F8J@football.example.com>',
			]),
			[
				'DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;',
				' d=football.example.com; i=@football.example.com;',
				' q=dns/txt; s=brisbane; t=1528637909; h=from : to :',
				' subject : date : message-id : from : subject : date;',
				' bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;',
				' b=',
			].join('\r\n'),
		);
		expect(signature).toBe(
			'/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==',
		);
		const record = recordOf({ type: 'ed25519', secret: Buffer.from(pkcs8, 'hex').toString('base64') });
		expect(record).toBe('v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=');
	});
});

describe('a DKIM key', () => {
	const pem = (bits: number, type: 'pkcs1' | 'pkcs8') =>
		generateKeyPairSync('rsa', { modulusLength: bits }).privateKey.export({ format: 'pem', type }).toString();

	it.each(['pkcs1', 'pkcs8'] as const)('is accepted in the format %s', (type) => {
		expect(parseKey(pem(2048, type))).toMatchObject({ kind: 'key', material: { type: 'rsa' } });
	});

	it.each([
		['an RSA key has 1024 to 4096 bits, this one has 512', () => pem(512, 'pkcs8')],
		['not a private key in PEM', () => 'hello'],
		[
			'DKIM supports RSA and Ed25519, not ec',
			() =>
				generateKeyPairSync('ec', { namedCurve: 'P-256' })
					.privateKey.export({ format: 'pem', type: 'pkcs8' })
					.toString(),
		],
		[
			'the key is protected by a passphrase',
			() =>
				generateKeyPairSync('rsa', { modulusLength: 2048 })
					.privateKey.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' })
					.toString(),
		],
	])('is rejected: %s', (why, make) => {
		expect(parseKey(make())).toEqual({ kind: 'error', message: why });
	});

	it('is published in strings of at most 255 octets', async () => {
		const line = zoneLineOf('s1._domainkey.example.com', recordOf(await generateKey('rsa')));
		expect(line).toMatch(/^s1\._domainkey\.example\.com\. IN TXT \( "[^"]{255}" "[^"]{1,255}" \)$/);
	});
});
