/** Builds small mails for tests, as they arrive by SMTP. */

export function mail(header: readonly string[], body: string): Buffer {
	return Buffer.from(`${header.join('\r\n')}\r\n\r\n${body.replace(/\r?\n/g, '\r\n')}`);
}

/** A report that does not follow RFC 3464. */
export function informal(body: string, header: readonly string[] = []): Buffer {
	return mail(
		['From: MAILER-DAEMON@mx.example.net', 'To: news@example.com', 'Subject: failure notice', ...header],
		body,
	);
}

export function dsn(status: string, { notice = 'It did not work.', returned = '' } = {}): Buffer {
	return mail(
		['From: MAILER-DAEMON@mx.example.net', 'Content-Type: multipart/report; boundary="b 1"'],
		[
			'--b 1',
			'Content-Type: text/plain',
			'',
			notice,
			'--b 1',
			'Content-Type: message/delivery-status',
			'',
			status,
			...(returned === '' ? [] : ['--b 1', 'Content-Type: text/rfc822-headers', '', returned]),
			'--b 1--',
			'',
		].join('\n'),
	);
}
