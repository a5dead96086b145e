import { type Hint, mailctl } from '../frame/command-line.js';
import type { SmtpTest } from '../frame/connection.js';

export function acceptance({ host, port, user, sender, ehlo_name }: SmtpTest): string {
	const said = `(EHLO ${ehlo_name})`;
	if (sender !== null) return `${host}:${port} accepts mail from ${sender} ${said}`;
	const login = user === null ? 'answers' : `accepts the login of ${user}`;
	return `${host}:${port} ${login} ${said}; no sender was tried, because there is none`;
}

export function refusal({ host, port, sender, reply, remedy }: SmtpTest): string {
	const said = reply?.replace(` ${host}:${port}:`, ':') ?? 'no answer';
	return `${host}:${port}${remedy === 'sender' ? ` refuses mail from ${sender}` : ''}: ${said}`;
}

export const loginRemedy: Hint = [
	mailctl('engine', 'init', '--smtp-password-file', 'FILE'),
	' sets the password',
];

const setting = (name: string, value: string) => mailctl('engine', 'settings', 'set', name, value);

const remedies: Readonly<Record<NonNullable<SmtpTest['remedy']>, Hint>> = {
	tls_port: setting('smtp_url', 'smtps://USER@HOST:465'),
	smtp_ca: [setting('smtp_ca', '-'), ' < ca.pem'],
	smtp_url: setting('smtp_url', 'smtp://USER@HOST:587'),
	smtp_ehlo_name: setting('smtp_ehlo_name', 'mail.example.com'),
	login: loginRemedy,
	sender: [
		'have the mail server accept that address, or use another: ',
		mailctl('senders', 'add', 'ADDRESS'),
	],
};

export function remedyFor(remedy: NonNullable<SmtpTest['remedy']>): Hint {
	return remedies[remedy];
}

export function isLoginReply(reason: string | null): boolean {
	return reason?.startsWith('auth: ') === true;
}
