/** How the sending worker reaches its SMTP server. */

/**
 * `never`: in clear, whatever the server offers. `opportunistic`: STARTTLS when it is offered, the certificate is
 * not checked (who can strip the offer could replace the certificate; RFC 7435). `required`: STARTTLS with a valid
 * certificate or nothing is sent. `implicit`: TLS from the first byte, with a valid certificate (RFC 8314 s.3.3).
 */
export type SmtpSecurity = 'never' | 'opportunistic' | 'required' | 'implicit';

export interface SmtpSettings {
	/** A host name or an IP address, IPv6 without brackets. */
	host: string;
	port: number;
	security: SmtpSecurity;
	/** `null` = no login. */
	user: string | null;
	/** Never part of a URL, a log line or an error. */
	password: string | null;
	/** The name said in EHLO; `null` = this machine's. */
	name: string | null;
	/** PEM certificates to trust instead of the system's; `null` = the system's. */
	ca: string | null;
}

/** Milliseconds; each bounds one whole step, so that a reply of a byte a second does not stretch it. */
export interface SmtpTimeouts {
	/** From the name look-up to the open connection. */
	connect: number;
	/** Greeting, EHLO, STARTTLS, login: each reply. */
	greeting: number;
	/** The replies to MAIL, RCPT and RSET. */
	command: number;
	/** The reply to DATA. */
	data: number;
	/** The whole body. */
	body: number;
	/** The reply after the final dot. */
	answer: number;
}

/** RFC 5321 s.4.5.3.2, but for `connect`, on which it is silent, and `body`, where it bounds each block by 3 min. */
export const standardTimeouts: SmtpTimeouts = {
	connect: 120_000,
	greeting: 300_000,
	command: 300_000,
	data: 120_000,
	body: 600_000,
	answer: 600_000,
};
