import { describe, expect, it } from 'vitest';
import { replyOf } from '../../../src/delivery/smtp/opening.js';
import { plainSettings } from '../../support/delivery.js';

function failed(code: string, originalCode: string, message: string, more = {}) {
	const error = Object.assign(new Error(message), { code, originalCode, ...more });
	const settings = plainSettings(25, { host: 'mail.example.invalid' });
	return replyOf(error, { phase: 'connect', settings, offersTls: false, hide: (text) => text }).reply.text;
}

describe('a failed connection', () => {
	it.each([
		[
			failed('EDNS', 'ENOTFOUND', 'getaddrinfo ENOTFOUND mail.example.invalid', { syscall: 'getaddrinfo' }),
			'connect ENOTFOUND mail.example.invalid:25: unknown host',
		],
		[
			failed('EDNS', 'EAI_AGAIN', 'getaddrinfo EAI_AGAIN mail.example.invalid', { syscall: 'getaddrinfo' }),
			'connect EAI_AGAIN mail.example.invalid:25: the name server does not answer',
		],
		[
			failed('ESOCKET', 'ECONNREFUSED', 'connect ECONNREFUSED 192.0.2.1:25', {
				address: '192.0.2.1',
				port: 25,
			}),
			'connect ECONNREFUSED 192.0.2.1:25: connection refused',
		],
		[failed('ESOCKET', 'EMFILE', 'connect EMFILE 192.0.2.1:25'), 'connect EMFILE 192.0.2.1:25'],
		[
			failed('ETIMEDOUT', 'ETIMEDOUT', 'Connection timeout'),
			'connect ETIMEDOUT mail.example.invalid:25: connection timed out',
		],
	])('is reported as %s', (told, expected) => {
		expect(told).toBe(expected);
	});
});
