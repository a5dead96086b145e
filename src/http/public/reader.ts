/** What a page may say about whom a message went to, and who sent it. */
import { parseMailbox } from '../../api/address.js';

/** `a…@example.com`: enough for its owner, too little for whoever was forwarded the mail. */
export function maskedAddress(mailbox: string): string {
	const address = parseMailbox(mailbox)?.address ?? mailbox;
	const at = address.lastIndexOf('@');
	if (at === -1) return '…';
	const [first = ''] = address.slice(0, at);
	return at < 2 ? `…${address.slice(at)}` : `${first}…${address.slice(at)}`;
}

/** `News (news@example.com)`, or the address alone. */
export function senderName(mailbox: string): string {
	const parsed = parseMailbox(mailbox);
	if (parsed === null) return mailbox;
	return parsed.name === '' ? parsed.address : `${parsed.name} (${parsed.address})`;
}
