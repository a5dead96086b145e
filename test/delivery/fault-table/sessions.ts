/** Before a message is spoken of: connect, TLS, greeting, EHLO, login. The queue pauses, no message suffers. */
import type { Certificates } from '../../support/certificates.js';
import { at, becomes, dropped, flood, paused, type Row, says, saysAndLeaves, silent, slow } from './row.js';

const taken = becomes('sent', 'answer', '250 2.0.0 Taken');
const inClear = { user: 'me', password: 'hunter2', security: 'never' } as const;
const secured = { user: 'me', password: 'hunter2', security: 'required' } as const;

export const connecting: readonly Row[] = [
	{ name: 'nobody listens', script: {}, isClosed: true, expected: paused(/^connect ECONNREFUSED/) },
	{ name: 'a drop at once', script: at('connect', dropped), expected: paused(/^greeting: /) },
	{ name: 'silence', script: at('connect', silent), expected: paused(/^greeting: /) },
	{ name: 'a greeting a byte at a time', script: at('connect', slow), expected: paused(/^greeting: /) },
	{ name: 'a greeting of 5 MB', script: at('connect', flood), expected: paused(/^greeting: .*exceeds/) },
	{ name: 'a greeting of lines', script: at('connect', says('220-One\r\n220 two')), expected: taken },
	{
		name: '554 for a greeting',
		script: at('connect', says('554 No')),
		expected: paused(/^greeting: 554 No$/),
	},
	{
		name: '421 for a greeting',
		script: at('connect', saysAndLeaves('421 4.3.2 Busy')),
		expected: paused(/^greeting: 421 4\.3\.2 Busy$/),
	},
	{
		name: 'a drop at EHLO',
		script: at('EHLO', dropped),
		expected: paused(/^ehlo: .* \(to EHLO client\.test\)$/),
	},
	{ name: 'silence at EHLO', script: at('EHLO', silent), expected: paused(/^ehlo: no answer within/) },
	{
		name: 'EHLO and HELO refused',
		script: at('EHLO', says('502 No')),
		expected: paused(/^ehlo: 502 No \(to EHLO client\.test\)$/),
	},
	{
		name: 'EHLO refused and HELO taken',
		script: { on: (_, line) => (line.startsWith('EHLO') ? says('502 5.5.1 Old') : undefined) },
		expected: taken,
	},
];

export const logins: readonly Row[] = [
	{
		name: 'STARTTLS missing where a password is to be said',
		script: { ehlo: ['AUTH PLAIN'] },
		settings: secured,
		expected: paused(/^tls: the server offers no STARTTLS, and no password is said in clear: /),
	},
	{
		name: 'STARTTLS deferred',
		script: { ehlo: ['STARTTLS'], ...at('STARTTLS', says('454 4.7.0 Not now')) },
		settings: secured,
		expected: paused(/^tls: 454 4\.7\.0 Not now$/),
	},
	{
		name: 'STARTTLS and then no handshake',
		script: { ehlo: ['STARTTLS'], ...at('STARTTLS', says('220 Go')) },
		settings: secured,
		expected: paused(/^tls: /),
	},
	{
		name: 'silence at STARTTLS',
		script: { ehlo: ['STARTTLS'], ...at('STARTTLS', silent) },
		settings: secured,
		expected: paused(/^tls: /),
	},
	{
		name: 'TLS from the first byte, to a server in clear',
		script: {},
		settings: { security: 'implicit' },
		expected: paused(
			/^tls: the server does not speak TLS from the first byte: smtp:\/\/ instead of smtps:\/\/ /,
		),
	},
	{
		name: 'a wrong password',
		script: { ehlo: ['AUTH PLAIN'], ...at('AUTH', says('535 5.7.8 Bad')) },
		settings: inClear,
		expected: paused(/^auth: 535 5\.7\.8 Bad$/),
	},
	{
		name: 'silence at the login',
		script: { ehlo: ['AUTH PLAIN'], ...at('AUTH', silent) },
		settings: inClear,
		expected: paused(/^auth: no answer within/),
	},
	{
		name: 'no login offered',
		script: {},
		settings: inClear,
		expected: paused(/^auth: the server offers no/),
	},
	{ name: 'a login', script: { ehlo: ['AUTH PLAIN'] }, settings: inClear, expected: taken },
	{
		name: '530 at MAIL',
		script: at('MAIL', says('530 5.7.0 Log in')),
		expected: paused(/^mail: 530 5\.7\.0/),
	},
	{
		name: '538 at RCPT',
		script: at('RCPT', says('538 5.7.11 Encrypt')),
		expected: paused(/^rcpt: 538 5\.7\.11/),
	},
];

/** Certificates are made when the tests run. */
export interface TlsOf {
	good: Certificates;
	wrongName: Certificates;
	expired: Certificates;
}

export function tlsRows({ good, wrongName, expired }: TlsOf): readonly Row[] {
	const starts = ({ key, cert }: Certificates) => ({
		ehlo: ['STARTTLS'],
		tls: { key, cert, from: 'starttls' as const },
	});
	const encrypted = ({ key, cert }: Certificates) => ({ tls: { key, cert, from: 'start' as const } });
	const required = (from: Certificates) => ({ security: 'required', ca: from.ca }) as const;
	const implicit = (from: Certificates) => ({ security: 'implicit', ca: from.ca }) as const;
	return [
		{ name: 'a good certificate', script: starts(good), settings: required(good), expected: taken },
		{
			name: 'an expired certificate',
			script: starts(expired),
			settings: required(expired),
			expected: paused(/^tls: the certificate of 127\.0\.0\.1 has expired/),
		},
		{
			name: 'a certificate of another name',
			script: starts(wrongName),
			settings: required(wrongName),
			expected: paused(
				/^tls: the certificate of the mail server is for \S+, not for 127\.0\.0\.1: smtp_url /,
			),
		},
		{
			name: 'a certificate of nobody known',
			script: starts(good),
			settings: required(wrongName),
			expected: paused(
				/^tls: no certificate in smtp_ca has signed the certificate of 127\.0\.0\.1: set smtp_ca /,
			),
		},
		{
			name: 'an expired certificate where encryption is only hoped for',
			script: starts(expired),
			expected: taken,
		},
		{ name: 'TLS from the first byte', script: encrypted(good), settings: implicit(good), expected: taken },
	];
}
