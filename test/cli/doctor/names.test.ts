// Which name server is asked: what is an address, and what is none.
import { describe, expect, it } from 'vitest';
import { createNames } from '../../../src/cli/doctor/dns.js';
import { UsageError } from '../../../src/cli/frame/errors.js';

describe('--name-server', () => {
	it.each([
		'192.0.2.53',
		'192.0.2.53:1',
		'192.0.2.53:65535',
		'2001:db8::53',
		'[2001:db8::53]',
		'[::1]:5353',
	])('takes %s', (server) => {
		expect(() => createNames(server).close()).not.toThrow();
	});

	// Port 0 ends the whole process in c-ares, where nothing can catch it.
	it.each([
		...['127.0.0.1:0', '[::1]:0', '127.0.0.1:65536', '127.0.0.1:99999', '[::1]:99999', '127.0.0.1:'],
		...['127.0.0.1:53x', '[::1]x', '[127.0.0.1]:53', '', 'ns.example.com', 'ns.example.com:53'],
	])('refuses "%s", and says how it is written', (server) => {
		const refusal = new UsageError(
			`--name-server: "${server}" is no IP address, alone or with a port of 1 to 65535`,
			{ hint: '--name-server 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53' },
		);
		expect(() => createNames(server)).toThrow(refusal);
	});
});
