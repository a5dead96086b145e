/** Faults before a message: connect, TLS, greeting, EHLO, login. The queue pauses, and messages stay queued. */
import type { Certificates } from '../../support/certificates.js';
import {
	at,
	becomes,
	dropped,
	flood,
	paused,
	type Row,
	row,
	says,
	saysAndLeaves,
	silent,
	slow,
} from './row.js';

const taken = becomes('sent', 'answer', '250 2.0.0 Taken');
const inClear = { user: 'me', password: 'hunter2', security: 'never' } as const;
const secured = { user: 'me', password: 'hunter2', security: 'required' } as const;

export const connecting: readonly Row[] = [
	row('a closed port', {}, paused(/^connect ECONNREFUSED/), { isClosed: true }),
	row('a drop at once', at('connect', dropped), paused(/^greeting: /)),
	row('no greeting', at('connect', silent), paused(/^greeting: /)),
	row('a greeting a byte at a time', at('connect', slow), paused(/^greeting: /)),
	row('a greeting of 5 MB', at('connect', flood), paused(/^greeting: .*exceeds/)),
	row('a greeting of several lines', at('connect', says('220-One\r\n220 two')), taken),
	row('554 for a greeting', at('connect', says('554 No')), paused(/^greeting: 554 No$/)),
	row(
		'421 for a greeting',
		at('connect', saysAndLeaves('421 4.3.2 Busy')),
		paused(/^greeting: 421 4\.3\.2 Busy$/),
	),
	row('a drop at EHLO', at('EHLO', dropped), paused(/^ehlo: .* \(to EHLO client\.test\)$/)),
	row('silence at EHLO', at('EHLO', silent), paused(/^ehlo: no answer within/)),
	row('EHLO and HELO refused', at('EHLO', says('502 No')), paused(/^ehlo: 502 No \(to EHLO client\.test\)$/)),
	row(
		'EHLO refused and HELO accepted',
		{ on: (_, line) => (line.startsWith('EHLO') ? says('502 5.5.1 Old') : undefined) },
		taken,
	),
];

export const logins: readonly Row[] = [
	row(
		'no STARTTLS although a password is set',
		{ ehlo: ['AUTH PLAIN'] },
		paused(/^tls: the server offers no STARTTLS, which a login, /),
		{ settings: secured },
	),
	row(
		'STARTTLS deferred',
		{ ehlo: ['STARTTLS'], ...at('STARTTLS', says('454 4.7.0 Not now')) },
		paused(/^tls: 454 4\.7\.0 Not now$/),
		{ settings: secured },
	),
	row(
		'STARTTLS without a handshake',
		{ ehlo: ['STARTTLS'], ...at('STARTTLS', says('220 Go')) },
		paused(/^tls: /),
		{ settings: secured },
	),
	row('silence at STARTTLS', { ehlo: ['STARTTLS'], ...at('STARTTLS', silent) }, paused(/^tls: /), {
		settings: secured,
	}),
	row(
		'implicit TLS to a plain server',
		{},
		paused(/^tls: the server does not speak TLS on this port: use smtp:\/\/ instead of smtps:\/\/ /),
		{ settings: { security: 'implicit' } },
	),
	row(
		'a wrong password',
		{ ehlo: ['AUTH PLAIN'], ...at('AUTH', says('535 5.7.8 Bad')) },
		paused(/^auth: 535 5\.7\.8 Bad$/),
		{ settings: inClear },
	),
	row(
		'no answer to the login',
		{ ehlo: ['AUTH PLAIN'], ...at('AUTH', silent) },
		paused(/^auth: no answer within/),
		{ settings: inClear },
	),
	row('no login offered', {}, paused(/^auth: the server offers no/), { settings: inClear }),
	row('a login', { ehlo: ['AUTH PLAIN'] }, taken, { settings: inClear }),
	row('530 at MAIL', at('MAIL', says('530 5.7.0 Log in')), paused(/^mail: 530 5\.7\.0/)),
	row('538 at RCPT', at('RCPT', says('538 5.7.11 Encrypt')), paused(/^rcpt: 538 5\.7\.11/)),
];

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
		row('a good certificate', starts(good), taken, { settings: required(good) }),
		row(
			'an expired certificate',
			starts(expired),
			paused(/^tls: the certificate of 127\.0\.0\.1, or one that signed it, has expired/),
			{ settings: required(expired) },
		),
		row(
			'a certificate for another name',
			starts(wrongName),
			paused(/^tls: the certificate is not for 127\.0\.0\.1, but for \S+: use that name/),
			{ settings: required(wrongName) },
		),
		row(
			'a certificate of an unknown CA',
			starts(good),
			paused(/^tls: no certificate in smtp_ca has signed the certificate of 127\.0\.0\.1$/),
			{ settings: required(wrongName) },
		),
		row('an expired certificate with opportunistic TLS', starts(expired), taken),
		row('implicit TLS', encrypted(good), taken, { settings: implicit(good) }),
	];
}
