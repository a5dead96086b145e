import {
	type Address,
	isEmailAddress,
	maxAddressLength,
	parseAddress,
	parseMailbox,
} from '../../api/address.js';
import { trimWhitespace } from '../../api/schema/python.js';
import { type CliErrorOptions, UsageError } from '../frame/errors.js';

export type AddressForm = 'address' | 'mailbox';

export function addressFault(text: string, form: AddressForm = 'address'): string | null {
	if ((form === 'mailbox' ? parseMailbox(text) : parseAddress(text)) !== null) return null;
	const trimmed = trimWhitespace(text);
	if (trimmed === '') return 'it is blank';
	return aroundFault(trimmed, form) ?? atFault(trimmed);
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

/** The error of a row of a file, with the fault of its address where that was refused. */
export function rowError({ code, error }: { code: string | null; error: string }, address: string): string {
	const isOfAddress = [...addressPaths, address].some((path) => error.startsWith(`${path}: `));
	return code === 'invalid' && isOfAddress ? withAddressFault(error, address) : error;
}

const addressPaths = ['email', 'to', 'to.0'];

// Unicode's controls and formats; blanks of other widths, and letters without a picture.
const unseen =
	/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u2000-\u200a\u202f\u3000\u3164\uffa0]|\u034f/u;

function aroundFault(text: string, form: AddressForm): string | null {
	const hidden = unseen.exec(text)?.[0];
	if (hidden !== undefined) return `it has a character that is not seen, ${codePointOf(hidden)}`;
	const open = text.endsWith('>') ? text.lastIndexOf('<') : -1;
	const inner = open === -1 ? null : text.slice(open + 1, -1);
	if (inner !== null && isEmailAddress(inner) && text.indexOf('@') > open)
		return form === 'address'
			? `only the address itself is taken, ${inner}, no name and no angle brackets`
			: 'the name before < has a character that needs quotes around the name';
	if (text.split(/[,;]/).filter((part) => part.includes('@')).length > 1) return 'it is several addresses';
	return inner === null ? null : addressFault(inner);
}

function atFault(text: string): string {
	const at = text.lastIndexOf('@');
	if (at === -1) return 'it has no @';
	const local = text.slice(0, at);
	const domain = text.slice(at + 1);
	if (local.includes('@') && !local.startsWith('"')) return 'it has more than one @';
	if (local === '') return 'nothing stands before @';
	if (domain === '') return 'nothing stands after @';
	if (/\s/.test(text) && !local.startsWith('"')) return 'it has a space';
	if (text.length > maxAddressLength)
		return `it has ${text.length} characters, and ${maxAddressLength} are the most`;
	const foreign = /[^\0-\x7f]/u.exec(local)?.[0];
	if (foreign !== undefined)
		return `the part before @ has a character outside ASCII (${shown(foreign)}), where this service takes ASCII only`;
	return isEmailAddress(`${local}@localhost`)
		? `there can be no domain ${domain}`
		: `there can be no address ${local}@…`;
}

function shown(character: string): string {
	return /\p{M}/u.test(character) ? codePointOf(character) : character;
}

function codePointOf(character: string): string {
	return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
