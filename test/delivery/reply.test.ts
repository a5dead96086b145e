import { describe, expect, it } from 'vitest';
import { classify, parseReply, ReplyReader, type Verdict } from '../../src/delivery/reply.js';
import type { Conversation } from '../../src/delivery/smtp/transaction.js';
import type { SmtpPhase } from '../../src/engine/rules/outcomes.js';

const judge = (kind: Conversation['kind'], phase: SmtpPhase, raw: string) =>
	classify({ kind, reply: parseReply(phase, raw) }).verdict;

describe('the table of replies', () => {
	const cases: [Conversation['kind'], SmtpPhase, string, Verdict][] = [
		['accepted', 'answer', '250 2.0.0 Ok', 'sent'],
		['unsendable', 'mail', 'too large', 'failed'],
		['broken', 'connect', 'ECONNREFUSED', 'infrastructure'],
		['broken', 'tls', 'certificate has expired', 'infrastructure'],
		['broken', 'greeting', '', 'infrastructure'],
		['broken', 'ehlo', '', 'infrastructure'],
		['refused', 'greeting', '421 4.3.2 Busy', 'infrastructure'],
		['refused', 'auth', '535 5.7.8 Bad credentials', 'infrastructure'],
		['refused', 'auth', '454 4.7.0 Try later', 'infrastructure'],
		['refused', 'mail', '530 5.7.0 Authentication required', 'infrastructure'],
		['refused', 'mail', '550 5.7.8 Bad credentials', 'infrastructure'],
		['broken', 'mail', '', 'deferred'],
		['broken', 'rcpt', '', 'deferred'],
		['broken', 'data', '', 'deferred'],
		['broken', 'body', '', 'deferred'],
		['broken', 'answer', '', 'uncertain'],
		['refused', 'rcpt', '450 4.2.1 Busy', 'deferred'],
		['refused', 'rcpt', '450 5.1.1 the code goes before the enhanced code', 'deferred'],
		['refused', 'rcpt', '550 5.1.1 x', 'hard'],
		['refused', 'rcpt', '550 5.1.2 x', 'hard'],
		['refused', 'rcpt', '553 5.1.3 x', 'hard'],
		['refused', 'rcpt', '551 5.1.6 x', 'hard'],
		['refused', 'rcpt', '556 5.1.10 x', 'hard'],
		['refused', 'rcpt', '554 5.2.1 x', 'hard'],
		['refused', 'rcpt', '550 5.1.11 x', 'failed'],
		['refused', 'rcpt', '550 5.1.8 bad sender', 'sender'],
		['refused', 'rcpt', '550 5.2.2 full', 'failed'],
		['refused', 'rcpt', '550 5.7.1 user unknown to this relay', 'failed'],
		['refused', 'rcpt', '550 mailbox unavailable', 'failed'],
		['refused', 'rcpt', '550 blocked by policy', 'failed'],
		['refused', 'rcpt', '550 <a@b>: Recipient address rejected: User unknown in local table', 'hard'],
		['refused', 'rcpt', '550 No such user here', 'hard'],
		['refused', 'rcpt', '553 5.1.0 unknown user', 'hard'],
		['refused', 'rcpt', '551 User not local', 'failed'],
		['refused', 'rcpt', '554 No such user here', 'failed'],
		['refused', 'rcpt', '552 Too many recipients', 'deferred'],
		['refused', 'mail', '550 5.1.1 x', 'sender'],
		['refused', 'answer', '550 5.1.1 x', 'hard'],
		['refused', 'answer', '452 4.3.1 x', 'deferred'],
	];
	it.each(cases)('gives the case "%s, %s, %s" the verdict %s', (kind, phase, raw, verdict) => {
		expect(judge(kind, phase, raw)).toBe(verdict);
	});

	it.each([
		...[
			'553 5.7.1 Sender address rejected: not owned by user',
			'501 no',
			'550 5.1.1 User unknown',
			'552 5.3.4 Too big',
		],
	])('reads "%s" as a refusal of the sender, at MAIL', (raw) => {
		expect(judge('refused', 'mail', raw)).toBe('sender');
	});

	const ofSender = [
		'554 Message rejected: Email address is not verified. The following identities failed the check in region EU-WEST-1: a@b.example',
		'554 5.2.252 SendAsDenied; a@b.example not allowed to send as c@d.example',
		'550 5.7.60 SMTP; Client does not have permissions to send as this sender',
		'554 Relay access denied',
		'550 relay not permitted',
		'553 sorry, that domain is not in my list of allowed rcpthosts (#5.7.1)',
		'551 We do not relay',
		'554 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org',
		'550 Your IP is on our block list',
		'554 IP 192.0.2.1 is listed by our DNSBL',
		'550 5.7.26 Unauthenticated email from b.example is not accepted due to the domain’s DMARC policy',
		'550-5.7.1 likely suspicious due to the very low reputation of the sending IP address',
		'550 Sender verify failed',
		'550 5.1.1 Sender address rejected: User unknown in virtual mailbox table',
		'550 The from address does not match a verified Sender Identity',
		'550 5.7.1 Unconfigured Sending Domain <b.example>',
		'554 5.7.1 Access denied',
		'550 5.7.509 no',
		'503 This mail server requires authentication',
		'550 SMTP AUTH is required for message submission on port 587',
		'550 Access denied - Invalid HELO name',
		'550 Domain b.example has exceeded the max emails per hour (100/100) allowed',
		'550 5.4.5 Daily user sending limit exceeded',
		'550 Sending suspended for this account',
		'550 Absenderadresse nicht zugelassen',
		'550 Die IP steht auf einer Sperrliste',
		'550 Adresse de l’expéditeur refusée',
		'550 Relais refusé',
		'550 Remitente no verificado',
		'550 Mittente non autorizzato',
		'550 Адрес отправителя отклонён',
		'550 差出人アドレスが認証されていません',
		'550 发件人地址未通过验证',
	];
	it.each(ofSender)('reads "%s" as a refusal of the sender, at RCPT and after the dot', (raw) => {
		expect([judge('refused', 'rcpt', raw), judge('refused', 'answer', raw)]).toEqual(['sender', 'sender']);
	});

	it.each([
		'550 5.7.1 Message content rejected, UBE',
		'554 5.7.1 This message has been blocked because it looks like spam',
		'554 5.7.1 Refused by local policy',
		'550-5.7.1 [192.0.2.1] Our system has detected that this message is likely unsolicited mail.',
		'552 5.7.0 Our system detected an illegal attachment on your message',
		'554 Virus found',
		'550 Письмо отклонено: спам',
	])('reads "%s" after the dot as a refusal of the content', (raw) => {
		expect(judge('refused', 'answer', raw)).toBe('content');
	});

	it.each([
		'550 sorry, no mailbox here by that name (#5.1.1)',
		'550 5.0.0 <a@b.example>... User unknown',
		'550 5.4.4 Invalid domain',
		'550 Host unknown',
		'554 5.0.0 This user doesn’t have a b.example account',
		'550 Recipient not found',
		'550 5.1.0 Address unknown',
		'550 User a (a@b.example) not listed in Domino Directory',
		'550 5.5.0 Adresse destinataire invalide. Invalid recipient.',
		'550 Empfänger unbekannt',
		'550 Benutzer existiert nicht',
		'550 Utilisateur inconnu',
		'550 El usuario no existe',
		'550 Usuário desconhecido',
		'550 Utente sconosciuto',
		'550 Gebruiker onbekend',
		'550 Użytkownik nie istnieje',
		'550 Пользователь не найден',
		'550 宛先のユーザーは存在しません',
		'550 用户不存在',
		'550 查无此人',
		'550 Okänd mottagare',
		'550 Άγνωστος χρήστης',
		'550 المستخدم غير موجود',
		'550 존재하지 않는 사용자',
	])('reads "%s" as an unknown address, at RCPT and after the dot of a mail to one recipient', (raw) => {
		const reply = parseReply('answer', raw);
		expect(judge('refused', 'rcpt', raw)).toBe('hard');
		expect(classify({ kind: 'refused', reply }).verdict).toBe('hard');
		expect(classify({ kind: 'refused', reply }, true).verdict).not.toBe('hard');
	});

	it.each([
		'550 Mailbox unavailable',
		'550 User unknown or mailbox full',
		'550 Recipient address rejected',
		'550 5.4.1 <a@b.example>: Recipient address rejected: Access denied',
		'550 User is not allowed to receive mail',
		'550 This account has been disabled',
		'550 5.0.0 Host not found, try again',
		'550 5.2.2 Mailbox of user a does not exist any more or is over quota',
		'550 Administrative prohibition',
	])('reads "%s" as a refusal of this message only', (raw) => {
		expect(judge('refused', 'rcpt', raw)).toBe('failed');
	});

	describe('for a reply about both the recipient and the sender', () => {
		const unknown = [
			'550 5.1.1 <a@b.example>: Recipient address rejected: User unknown in local table (sender not authenticated)',
			'550 5.1.1 User unknown; sender=<news@c.example>; helo=<mail.c.example>',
			'550 5.1.1 Mailbox does not exist. Authentication is required to use this server as a relay.',
			'550 5.1.1 User Unknown - https://support.proofpoint.com/dnsbl-lookup.cgi?ip=192.0.2.1',
			'550 5.1.1 No such user here, see http://www.spamhaus.org/query/bl?ip=192.0.2.1',
			'550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup. The sender must check the address.',
			'550 5.1.1 Recipient rejected (helo=mail.c.example)',
			'550 5.1.1 The email account that you tried to reach does not exist. Ask the sender to check it.',
			'550 5.1.2 Host unknown. No authentication was tried.',
			'550 No such user here (HELO mail.c.example)',
			'550 Unknown user. Return to sender.',
			'550 User unknown; the sender was news@c.example',
			'550 Mailbox not found, dnsbl.b.example was not asked',
			'553 5.1.0 Address unknown. From: news@c.example',
			'554 5.0.0 Recipient unknown. EHLO was mail.c.example',
			'550 Benutzer unbekannt. Der Absender wird benachrichtigt.',
			'550 Destinataire inconnu. Expéditeur : news',
			'550 Usuario desconocido. Remitente: news',
		];
		const sender = [
			'550 5.1.1 Sender address rejected: User unknown in virtual mailbox table',
			'550 5.1.1 Sender address rejected. User unknown.',
			'550 5.1.0 Sender denied. No such user.',
			'550 User unknown (Sender verify failed)',
			'550-Verification failed for <news@c.example>\n550-Called: 192.0.2.1\n550-Response: 550 No such user\n550 Sender verify failed',
			'550 Callout verification failed. Response: 550 5.1.1 User unknown',
			'553 5.1.8 Domain of sender address news@c.example does not exist',
			'550 5.1.2 Sender domain not found',
			'550 Unknown user in return path: rejected',
			'550 5.1.1 HELO rejected: host not found',
			'504 5.1.2 <mail>: Helo command rejected: Host not found',
			'550 5.1.1 Client host rejected: unknown user',
			'550 Unknown user. Relay access denied.',
			'550 User unknown. Blocked using zen.spamhaus.org',
			'550 Your IP is on a block list. No such user.',
			'553 5.1.3 http://www.spamhaus.org/query/bl?ip=192.0.2.1',
			'550 User not found: authentication required',
			'550 Authentication failed. Unknown user.',
			'550 Absender abgelehnt: Benutzer unbekannt',
			'550 Adresse de l’expéditeur refusée. Utilisateur inconnu.',
		];
		it.each([
			...unknown.map((raw) => ({ raw, verdict: 'hard' })),
			...sender.map((raw) => ({ raw, verdict: 'sender' })),
			...[
				'550 5.7.1 User unknown; helo=<mail.c.example>',
				'554 No such user here (sender=<news@c.example>)',
			].map((raw) => ({ raw, verdict: 'failed' })),
		])('gives the verdict $verdict: $raw', ({ raw, verdict }) => {
			expect([judge('refused', 'rcpt', raw), judge('refused', 'answer', raw)]).toEqual([verdict, verdict]);
		});
	});

	it('classifies a megabyte of hostile text quickly', () => {
		// Quadratic work on a megabyte would exceed the time limit of the test.
		expect(judge('refused', 'rcpt', `550 ${'user is '.repeat(125_000)}`)).toBe('failed');
	});
});

describe('a reply', () => {
	it('is parsed into its codes and one line without control characters', () => {
		expect(parseReply('rcpt', '550-5.1.1 No\u001b[31m such\r\n550 5.1.1 user\u202e!')).toEqual({
			phase: 'rcpt',
			code: 550,
			enhanced: '5.1.1',
			text: 'No [31m such user !',
		});
	});
	it('has at most 500 characters of text', () => {
		expect(parseReply('rcpt', `550 ${'é'.repeat(5_000)}`).text).toHaveLength(500);
	});
	it('without a code is kept as text', () => {
		expect(parseReply('answer', '25 nearly')).toEqual({
			phase: 'answer',
			code: null,
			enhanced: null,
			text: '25 nearly',
		});
	});
});

const read = (...chunks: string[]) => {
	const reader = new ReplyReader(100);
	return chunks.map((chunk) => reader.read(Buffer.from(chunk)));
};

describe('the reader of SMTP replies', () => {
	it.each([
		['one', ['250 Ok\r\n'], [['250 Ok']]],
		['a reply without text', ['250\r\n'], [['250']]],
		['several replies in a packet', ['250 a\r\n354 b\r\n'], [['250 a', '354 b']]],
		['one reply in several packets', ['25', '0 O', 'k\r', '\n'], [[], [], [], ['250 Ok']]],
		['several lines', ['250-a\r\n250-b\r\n', '250 c\r\n'], [[], ['250-a\n250-b\n250 c']]],
		['bare line ends', ['250-a\n250 b\n'], [['250-a\n250 b']]],
		['a reply without a code', ['hello\r\n250 Ok\r\n'], [['hello', '250 Ok']]],
		['empty lines between replies', ['\r\n250 Ok\r\n\r\n'], [['250 Ok']]],
	])('reads %s', (_name, chunks, replies) => {
		expect(read(...chunks)).toEqual(replies);
	});

	it('keeps a character that is split between packets', () => {
		const reader = new ReplyReader(100);
		const bytes = Buffer.from('250 é\r\n');
		expect([reader.read(bytes.subarray(0, 5)), reader.read(bytes.subarray(5))]).toEqual([[], ['250 é']]);
	});

	it.each([
		['a line without an end', ['250 ', 'x'.repeat(100)]],
		['continuation lines without an end', Array.from({ length: 20 }, () => '250-again\r\n')],
	])('reports %s as too large', (_name, chunks) => {
		const reader = new ReplyReader(100);
		expect(reader.read(Buffer.from('250 Ok\r\n'))).toEqual(['250 Ok']);
		expect(reader.isTooLarge).toBe(false);
		for (const chunk of chunks) reader.read(Buffer.from(chunk));
		expect(reader.isTooLarge).toBe(true);
	});

	it('returns an unfinished refusal when the connection ends, but no other unfinished reply', () => {
		const reader = new ReplyReader(100);
		reader.read(Buffer.from('250 Ok\r\n550 5.1.1 No su'));
		expect(reader.lastWords()).toBe('550 5.1.1 No su');
		const other = new ReplyReader(100);
		other.read(Buffer.from('250 O'));
		expect(other.lastWords()).toBeNull();
	});
});
