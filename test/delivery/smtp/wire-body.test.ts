import { describe, expect, it } from 'vitest';
import { wireBody } from '../../../src/delivery/smtp/transaction.js';

describe('a body on the wire', () => {
	it.each([
		['is what it was, when no line begins with a dot', 'a\r\nb.c\r\n', 'a\r\nb.c\r\n'],
		['has its dots doubled at the start of lines', '.a\r\n..b\r\nc.\r\n.\r\n', '..a\r\n...b\r\nc.\r\n..\r\n'],
		['ends its last line', 'a', 'a\r\n'],
		['ends its last line with both characters', 'a\n', 'a\r\n'],
		[
			'does not end where a server takes LF for a line end',
			'a\n.\nMAIL FROM:<b>\r\n',
			'a\r\n..\r\nMAIL FROM:<b>\r\n',
		],
		['does not end at LF dot CRLF', 'a\n.\r\nb\r\n', 'a\r\n..\r\nb\r\n'],
		['does not end at CR dot CR', 'a\r.\rb\r\n', 'a\r\n..\r\nb\r\n'],
		['does not end at CR dot CRLF', 'a\r.\r\nb\r\n', 'a\r\n..\r\nb\r\n'],
		['keeps bytes beyond ASCII', '.é\r\n', '..é\r\n'],
		['may be empty', '', ''],
	])('%s', (_name, written, sent) => {
		expect(wireBody(Buffer.from(written)).toString()).toBe(sent);
	});
});
