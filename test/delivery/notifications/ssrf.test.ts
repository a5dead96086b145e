import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type LookupFunction, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../../../src/api/api.js';
import { connect } from '../../../src/cli/connect.js';
import { callWebhook } from '../../../src/delivery/notifications/call.js';
import { isPublicAddress, refuseTarget } from '../../../src/delivery/notifications/target.js';
import { dependencies } from '../../support/connect.js';

/** Hosts that are not on the public internet; many of them are this machine. */
const forms = [
	// 127.0.0.0/8 in every form that URL accepts
	'127.0.0.1 127.1 127.0.1 127.0.0.1. 127.255.255.254 2130706433 0x7f000001 0x7f.1 017700000001',
	'0177.0.0.1 0x7F.0x0.0x0.0x1 127.0.0x1 0177.1 %31%32%37.0.0.1 ①②⑦.0.0.1 １２７.０.０.１ 127。0。0。1',
	'127．0．0．1 0 0.0.0.0 0x0 00000000 0.0.0.1',
	// names of this machine
	'localhost LOCALHOST localhost. LocalHost. hooks.localhost ⓛocalhost loc%61lhost',
	// private, shared, link-local, metadata
	'10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255 100.64.0.1',
	'100.127.255.254 169.254.169.254 169.254.0.1 2852039166 0xA9FEA9FE',
	// reserved: documentation, benchmarks, protocols, multicast, broadcast
	'192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 192.0.0.1 224.0.0.1 239.255.255.250 240.0.0.1',
	'255.255.255.255 192.88.99.1',
	// IPv6
	'[::1] [0:0:0:0:0:0:0:1] [::] [::0001] [fe80::1] [febf::1] [fc00::1] [fd00:ec2::254] [ff02::1]',
	'[fec0::1] [2001:db8::1] [100::1] [2001::1] [2001:10::1] [3fff::1]',
	// IPv4 within IPv6: mapped, compatible, translated, NAT64, 6to4, ISATAP
	'[::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] [::ffff:10.0.0.1]',
	'[::ffff:169.254.169.254] [::127.0.0.1] [::7f00:1] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1]',
	'[64:ff9b::7f00:1] [64:ff9b::a9fe:a9fe] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2002:a00:1::1]',
	'[2002:c0a8:1::1] [2a00::5efe:127.0.0.1] [2a00::200:5efe:10.0.0.1]',
].flatMap((line) => line.split(' '));

const refusal = 'This URL points to a private, loopback or reserved address.';

describe(`a private address in one of ${forms.length} forms`, () => {
	let listeners: Server[];
	let connections = 0;
	let port: number;
	let api: Api;
	let close: () => Promise<void>;
	beforeAll(async () => {
		// Listens on one port with IPv4 and, if possible, IPv6; no test may connect to it.
		const first = await listen('0.0.0.0', 0);
		port = (first.address() as AddressInfo).port;
		listeners = [
			first,
			...(await listen('::1', port).then(
				(one) => [one],
				() => [],
			)),
		];
		for (const listener of listeners) {
			listener.on('connection', (socket) => {
				connections += 1;
				socket.destroy();
			});
		}
		({ api, close } = await connect({ kind: 'local', url: ':memory:', create: true }, dependencies()));
	});
	afterAll(async () => {
		for (const listener of listeners) listener.close();
		await close();
	});
	const urlOf = (host: string) => `http://${host}:${port}/hook`;
	const call = (url: string, more: Partial<Parameters<typeof callWebhook>[0]> = {}) =>
		callWebhook({
			...{ url, body: '{}', headers: {}, credentials: null, allowPrivate: false, timeoutMs: 60_000 },
			...more,
		});

	it.each(forms)('is rejected when a webhook is created: %s', async (host) => {
		const refused = await api.webhooks.create({ url: urlOf(host), type: 'OPENED' }).catch((error) => error);
		expect(refused).toMatchObject({ code: 'invalid', fields: { url: expect.anything() } });
		expect(connections).toBe(0);
	});

	it.each(forms)('is rejected when a webhook is changed: %s', async (host) => {
		const { id } = await api.webhooks.create({ url: 'http://93.184.216.34/', type: 'OPENED' });
		const refused = await api.webhooks.patch(id, { url: urlOf(host) }).catch((error) => error);
		expect(refused).toMatchObject({ code: 'invalid', fields: { url: expect.anything() } });
		const replaced = api.webhooks.replace(id, { url: urlOf(host), type: 'OPENED' });
		expect(await replaced.catch((error) => error)).toMatchObject({ code: 'invalid' });
		expect(connections).toBe(0);
	});

	it.each(
		forms,
	)('is not called by a webhook test after allow_private_webhooks becomes false: %s', async (host) => {
		const opened = await connect({ kind: 'local', url: ':memory:', create: true }, dependencies());
		await opened.local?.settings.set({ allow_private_webhooks: 'true' });
		const hook = await opened.api.webhooks.create({ url: urlOf(host), type: 'OPENED' }).catch(() => null);
		await opened.local?.settings.set({ allow_private_webhooks: 'false' });
		if (hook !== null) {
			expect(await opened.api.webhooks.test(hook.id)).toMatchObject({ result: false, status_code: null });
		}
		expect(connections).toBe(0);
		await opened.close();
	});

	it.each(forms)('gets no connection, neither directly nor through a name: %s', async (host) => {
		expect(await call(urlOf(host))).toMatchObject({ status: null, error: expect.any(String) });
		const address = addressOf(urlOf(host));
		const rebound: LookupFunction = (_name, _options, callback) =>
			callback(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
		const answer = await call(`http://rebound.example.com:${port}/`, { lookup: rebound });
		expect(answer).toMatchObject({
			status: null,
			error: 'rebound.example.com points to a private, loopback or reserved address',
		});
		expect(connections).toBe(0);
	});

	it.each(forms)('is not reached through a redirect: %s', async (host) => {
		const redirecting = createHttpServer((_request, response) => {
			const location = Buffer.from(urlOf(host)).toString('latin1');
			response.writeHead(307, { location }).end();
		});
		await new Promise<void>((resolve) => redirecting.listen(0, '127.0.0.1', resolve));
		const target = `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}/`;
		expect(await call(target, { allowPrivate: true })).toMatchObject({ status: 307 });
		redirecting.closeAllConnections();
		redirecting.close();
		expect(connections).toBe(0);
	});

	it('is rejected with a message that names no address', async () => {
		const refused = await api.webhooks
			.create({ url: urlOf('10.0.0.1'), type: 'OPENED' })
			.catch((error) => error);
		expect(refused.fields).toEqual({ url: [{ code: 'private_target', message: refusal }] });
	});

	it('cannot be reached through a name that resolves to it only at a second lookup', async () => {
		let asked = 0;
		const changing: LookupFunction = (_name, _options, callback) => {
			asked += 1;
			// The first look-up gives a public address that nobody has, and a second one would give this machine's.
			callback(null, [asked === 1 ? { address: '2d00::1', family: 6 } : { address: '127.0.0.1', family: 4 }]);
		};
		const answer = await call(`http://rebound.example.com:${port}/`, { lookup: changing, timeoutMs: 500 });
		expect(answer).toMatchObject({ status: null, error: expect.not.stringContaining('reserved') });
		expect([asked, connections]).toEqual([1, 0]);
	});
});

function addressOf(url: string): string {
	const { hostname } = new URL(url);
	return hostname.startsWith('[') ? hostname.slice(1, -1) : /[a-z]/i.test(hostname) ? '127.0.0.1' : hostname;
}

function listen(host: string, port: number): Promise<Server> {
	return new Promise((resolve, reject) => {
		const server = createServer();
		server.once('error', reject);
		server.listen({ port, host, ipv6Only: true }, () => resolve(server));
	});
}

const nobody = async () => {
	throw new Error('ENOTFOUND');
};

it.each([
	'http://93.184.216.34/',
	'https://[2606:2800:220:1:248:1893:25c8:1946]/',
	'http://[64:ff9b::5db8:d822]/',
	'https://hooks.example.com/in',
])('the target %s is accepted, even if its name cannot be resolved', async (url) => {
	expect(await refuseTarget(url, nobody)).toBeNull();
});

it('a name with one private address is rejected, and an invalid address counts as private', async () => {
	const both = async () => ['93.184.216.34', '10.0.0.1'];
	expect(await refuseTarget('http://two.example/', both)).toBe('private_target');
	expect(isPublicAddress('not an address')).toBe(false);
});
