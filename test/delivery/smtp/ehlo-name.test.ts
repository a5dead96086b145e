import { expect, it } from 'vitest';
import { ehloName } from '../../../src/delivery/smtp/settings.js';

const url = 'https://news.example.org/m';

it.each<[string, string | null, string, string | null, string | null, string]>([
	['the setting before all', 'out.example.com', 'mx.example.net', url, 'a@example.com', 'out.example.com'],
	['the name of the machine', null, 'mx.example.net', url, 'a@example.com', 'mx.example.net'],
	['no name of a container', null, '3f2a9c1b7d4e', url, 'a@example.com', 'news.example.org'],
	['no name that is none', null, 'web_1.prod_', url, 'a@example.com', 'news.example.org'],
	['no address of a machine', null, '10.0.0.7', url, 'a@example.com', 'news.example.org'],
	['the domain of the sender', null, 'web', null, 'a@example.com', 'example.com'],
	['no URL of this machine', null, 'web', 'http://localhost:8080', 'a@example.com', 'example.com'],
	[
		'no URL with an address',
		null,
		'web',
		'http://127.0.0.1:8080',
		'a@Bücher.example',
		'xn--bcher-kva.example',
	],
	['no URL with an IPv6 address', null, 'web', 'http://[::1]:8080', 'a@example.com', 'example.com'],
	['an address where nothing else is', null, 'web', null, null, '[127.0.0.1]'],
])('the EHLO name is %s', (_, smtpEhloName, machine, publicUrl, sender, name) => {
	expect(ehloName({ smtpEhloName, publicUrl }, sender, machine)).toBe(name);
});
