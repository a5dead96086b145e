import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Finding } from '../../../src/cli/doctor/checks.js';
import { type NameServer, startNameServer } from '../../support/name-server.js';
import { makeProject, type Project } from '../../support/project.js';

let server: NameServer;
let project: Project;
beforeAll(async () => {
	server = await startNameServer();
});
afterAll(() => server.close());
beforeEach(async () => {
	project = await makeProject();
	for (const name of Object.keys(server.zones)) delete server.zones[name];
});

async function found(check: string, code = 0): Promise<Omit<Finding, 'check'>[]> {
	const words = ['doctor', '--only', 'dns', '--name-server', server.address];
	const all = (await project.json(words, { code })) as Finding[];
	return all.flatMap(({ check: name, ...rest }) => (name === check ? [rest] : []));
}

describe('doctor’s check of DKIM', () => {
	const addKey = async () => {
		const words = ['engine', 'dkim', 'add', '--domain', 'example.com', '--selector', 's1'];
		return (await project.json(words)) as { dns_name: string; dns_value: string };
	};

	it('warns if the domain has no signing key', async () => {
		server.zones['example.com'] = {};
		expect(await found('dns.dkim')).toEqual([
			{
				level: 'warning',
				message: 'mailctl does not sign mail from example.com, but large providers require a signature',
				fix: `mailctl --db ${project.db} engine dkim add --domain example.com --selector s1`,
			},
		]);
	});

	it('reports a problem if no DNS record publishes the key', async () => {
		await addKey();
		server.zones['example.com'] = {};
		expect(await found('dns.dkim', 11)).toEqual([
			{
				level: 'problem',
				message: 's1._domainkey.example.com has no TXT record, so no signature can be verified',
				fix: `mailctl --db ${project.db} engine dkim list -o tsv --fields dns_record`,
			},
		]);
	});

	it.each([
		[
			'p=MIIBIjANBgkq',
			'the TXT record of s1._domainkey.example.com has a different key, so every signature fails',
		],
		['p=', 'the TXT record of s1._domainkey.example.com revokes the key'],
	])('reports a problem if the DNS record is "%s"', async (record, message) => {
		const { dns_name } = await addKey();
		server.zones[dns_name] = { TXT: [`v=DKIM1; k=rsa; ${record}`] };
		expect(await found('dns.dkim', 11)).toMatchObject([{ level: 'problem', message }]);
	});

	it('accepts a record that matches the key, even in several strings and with extra spaces', async () => {
		const { dns_name, dns_value } = await addKey();
		server.zones['example.com'] = {};
		server.zones[dns_name] = { TXT: [dns_value.replace('p=', 'p= ').replaceAll(';', ' ;')] };
		expect(await found('dns.dkim')).toEqual([
			{ level: 'ok', message: 's1._domainkey.example.com matches the signing key', fix: null },
		]);
	});
});

describe('doctor’s check of SPF', () => {
	it('warns if the domain has no SPF record', async () => {
		server.zones['example.com'] = { TXT: ['some-other=thing'] };
		expect(await found('dns.spf')).toEqual([
			{
				level: 'warning',
				message: 'example.com has no SPF record: large providers refuse bulk mail without one',
				fix: 'example.com. IN TXT "v=spf1 mx ~all" ; add the servers that send mail from this domain',
			},
		]);
	});

	it('reports a problem if the domain has two SPF records', async () => {
		server.zones['example.com'] = { TXT: ['v=spf1 mx -all', 'v=spf1 a -all'] };
		expect(await found('dns.spf', 11)).toMatchObject([{ level: 'problem' }]);
	});

	it('reads the record of the bounce address’s domain if a bounce address is set', async () => {
		await project.json(['engine', 'settings', 'set', 'bounce_address', 'bounces@b.example.net']);
		server.zones['example.com'] = {};
		server.zones['b.example.net'] = { TXT: ['v=spf1 -all'], MX: [[10, 'mx.example.net']] };
		expect(await found('dns.spf')).toEqual([
			{ level: 'ok', message: 'b.example.net: v=spf1 -all', fix: null },
		]);
		expect(await found('dns.bounces')).toEqual([
			{ level: 'ok', message: 'bounces to bounces@b.example.net arrive at mx.example.net', fix: null },
		]);
	});
});

describe('doctor’s check of DMARC', () => {
	it('accepts the policy of a parent domain', async () => {
		await project.json(['senders', 'add', 'news@mail.shop.example.org']);
		await project.json(['senders', 'remove', 'news@example.com', '-y']);
		server.zones['mail.shop.example.org'] = {};
		server.zones['_dmarc.example.org'] = { TXT: ['v=DMARC1; p=reject'] };
		expect(await found('dns.dmarc')).toEqual([
			{ level: 'ok', message: '_dmarc.example.org: v=DMARC1; p=reject', fix: null },
		]);
	});

	it('warns if no policy is published', async () => {
		server.zones['example.com'] = {};
		expect(await found('dns.dmarc')).toMatchObject([
			{ level: 'warning', fix: '_dmarc.example.com. IN TXT "v=DMARC1; p=none"' },
		]);
	});
});

describe('a domain that does not exist', () => {
	const gone = { level: 'skipped', message: 'example.com does not exist', fix: null };

	it('is reported once, and the checks of its records are skipped', async () => {
		expect(await found('dns.domain', 11)).toEqual([
			{
				level: 'problem',
				message: 'example.com does not exist: receivers refuse mail from it',
				fix: 'correct the spelling of the domain, register it, or use another one',
			},
		]);
		for (const check of ['dns.dkim', 'dns.spf', 'dns.dmarc']) expect(await found(check, 11)).toEqual([gone]);
	});

	it('is also reported if the bounce address or a signing key uses it', async () => {
		await project.json(['engine', 'settings', 'set', 'bounce_address', 'bounces@example.net']);
		await project.json(['engine', 'dkim', 'add', '--domain', 'example.org', '--selector', 's1']);
		server.zones['example.com'] = {};
		expect(await found('dns.domain', 11)).toMatchObject([
			{ level: 'problem', message: expect.stringMatching(/^example\.net does not exist/) },
			{ level: 'ok', message: 'example.com exists' },
			{ level: 'problem', message: expect.stringMatching(/^example\.org does not exist/) },
		]);
		for (const check of ['dns.spf', 'dns.bounces'])
			expect(await found(check, 11)).toEqual([{ ...gone, message: 'example.net does not exist' }]);
	});
});

describe('the domain of the bounce address', () => {
	beforeEach(() => project.json(['engine', 'settings', 'set', 'bounce_address', 'bounces@example.net']));

	it.each([
		['is a problem if it has no mail server', {}, 'problem'],
		['is a problem if it declares that it accepts no mail', { MX: [[0, '.']] as const }, 'problem'],
		['is fine if its own host accepts mail', { A: ['192.0.2.7'] }, 'ok'],
	] as const)('%s', async (_, zone, level) => {
		server.zones['example.net'] = zone;
		server.zones['example.com'] = {};
		expect(await found('dns.bounces', level === 'ok' ? 0 : 11)).toMatchObject([{ level }]);
	});
});

describe.each([
	['an unreachable name server', ['--name-server', '127.0.0.1:9'], /^DNS did not answer: /],
	['--offline', ['--offline'], /^not checked with --offline$/],
])('doctor with %s', (_, words, reason) => {
	const findings = async () => (await project.json(['doctor', '--only', 'dns', ...words])) as Finding[];
	const skipped = { level: 'skipped', message: expect.stringMatching(reason), fix: null };

	it('skips the checks that need DNS, but still warns about a domain without a key', async () => {
		expect(await findings()).toMatchObject([
			{ check: 'dns.domain', ...skipped },
			{
				check: 'dns.dkim',
				level: 'warning',
				message: 'mailctl does not sign mail from example.com, but large providers require a signature',
				fix: `mailctl --db ${project.db} engine dkim add --domain example.com --selector s1`,
			},
			{ check: 'dns.spf', ...skipped },
			{ check: 'dns.dmarc', ...skipped },
			{ check: 'dns.bounces', level: 'skipped' },
		]);
	});

	it('does not check the published record of a key', async () => {
		await project.json(['engine', 'dkim', 'add', '--domain', 'example.com', '--selector', 's1']);
		expect((await findings()).filter(({ check }) => check === 'dns.dkim')).toEqual([
			{ check: 'dns.dkim', ...skipped },
		]);
	});
});
