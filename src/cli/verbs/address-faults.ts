import { type Address, maxAddressLength, parseAddress, parseMailbox } from '../../api/address.js';
import { trimWhitespace } from '../../api/schema/python.js';
import { type CliErrorOptions, UsageError } from '../frame/errors.js';

export type AddressForm = 'address' | 'mailbox';

export function addressFault(text: string, form: AddressForm = 'address'): string | null {
	if ((form === 'mailbox' ? parseMailbox(text) : parseAddress(text)) !== null) return null;
	const trimmed = trimWhitespace(text);
	return trimmed === '' ? 'it is blank' : (faultIn(trimmed, form) ?? 'its form is invalid');
}

export function noAddress(text: string, form?: AddressForm): string | null {
	const fault = addressFault(text, form);
	return fault && `"${text}" is not an e-mail address: ${fault}`;
}

export function assertAddress(
	text: string,
	{ flag, ...options }: Pick<CliErrorOptions, 'hint'> & { flag?: string } = {},
): Address {
	const address = parseAddress(text);
	if (address !== null) return address;
	throw new UsageError(`${flag === undefined ? '' : `${flag}: `}${noAddress(text)}`, options);
}

export function withAddressFault(message: string, text: string, form?: AddressForm): string {
	const fault = addressFault(text, form);
	return fault === null ? message : `${message.replace(/\.$/, '')}: ${fault}`;
}

export function rowError({ code, error }: { code: string | null; error: string }, address: string): string {
	const isOfAddress = [...addressPaths, address].some((path) => error.startsWith(`${path}: `));
	return code === 'invalid' && isOfAddress ? withAddressFault(error, address) : error;
}

const addressPaths = ['email', 'to', 'to.0'];

function faultIn(text: string, form: AddressForm): string | null {
	const unseen =
		/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u2000-\u200a\u202f\u3000\u3164\uffa0]|\u034f/u;
	const hidden = unseen.exec(text)?.[0];
	if (hidden !== undefined) return `it has an invisible character, ${codePointOf(hidden)}`;
	if (form === 'address' && parseMailbox(text) !== null)
		return `give only the address itself: ${parseMailbox(text)?.address}`;
	if (text.split(/[,;]/).filter((part) => part.includes('@')).length > 1)
		return 'it contains several addresses';
	if (!text.includes('@')) return 'it has no @';
	if (text.length > maxAddressLength)
		return `it has ${text.length} characters, but at most ${maxAddressLength} are allowed`;
	const local = text.slice(0, text.lastIndexOf('@'));
	return /[^\0-\x7f]/u.test(local) ? 'the part before @ has a character outside ASCII' : null;
}

function codePointOf(character: string): string {
	return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
