/** What the code of a bounce means, in words: RFC 3463 s.3, and the classes of SMTP's own codes (RFC 5321 s.4.2). */

const details: Readonly<Record<string, string>> = {
	'1.1': 'no such mailbox',
	'1.2': 'no such domain',
	'1.3': 'the address is not valid',
	'1.6': 'the mailbox has moved',
	'1.10': 'the domain takes no mail',
	'2.0': 'the mailbox is not available',
	'2.1': 'the mailbox is disabled',
	'2.2': 'the mailbox is full',
	'2.3': 'the message is too large',
	'3.0': 'the mail system refuses it',
	'3.4': 'the message is too large',
	'4.0': 'the network or the way there fails',
	'4.1': 'the mail server does not answer',
	'4.2': 'the connection broke off',
	'4.4': 'no way to the mail server',
	'4.7': 'not delivered in time',
	'7.0': 'refused by policy',
	'7.1': 'refused by policy',
	'7.26': 'authentication of the mail failed',
};

const subjects: readonly string[] = [
	'not specified',
	'the address',
	'the mailbox',
	'the mail system',
	'the network',
	'the protocol',
	'the content',
	'refused by policy',
];

export function meaningOf(code: string): string {
	if (code === '') return 'no answer with a code';
	const [, first, subject, detail] = /^([245])\.(\d{1,3})\.(\d{1,3})$/.exec(code) ?? [];
	if (subject !== undefined)
		return details[`${subject}.${detail}`] ?? subjects[Number(subject)] ?? `class ${first}`;
	if (/^4\d\d$/.test(code)) return 'refused for now';
	return /^5\d\d$/.test(code) ? 'refused for good' : '';
}
