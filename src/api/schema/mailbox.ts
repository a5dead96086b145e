/** Fields that contain addresses, checked and parsed. */
import { type Address, emailKey, type Mailbox, parseMailbox } from '../address.js';
import { char, email } from './char.js';
import { type Field, field, refuse, valid } from './field.js';
import { texts } from './texts.js';

const message = texts.email;
const text = char({ invalid: message });

/** A plain address and its key. */
export function address(): Field<Address, 'required'> {
	const plain = email();
	return field(plain.schema, (input) => {
		const checked = plain.check(input);
		return checked.kind === 'invalid'
			? checked
			: valid({ address: checked.value, key: emailKey(checked.value) });
	});
}

/** `a@b` or `Name <a@b>`, one mailbox. */
export function mailbox(): Field<Mailbox, 'required'> {
	return field({ type: 'string', minLength: 1 }, (input) => {
		const checked = text.check(input);
		if (checked.kind === 'invalid') return checked;
		const parsed = parseMailbox(checked.value);
		return parsed === null ? refuse('invalid', message) : valid(parsed);
	});
}

/** One of `inner`, or an array of one: the document shows `from` as both. Other arrays are refused. */
export function oneOrListOfOne<T>(inner: Field<T>): Field<T, 'required'> {
	const asList = { type: 'array', items: inner.schema, minItems: 1, maxItems: 1 };
	return field({ anyOf: [inner.schema, asList] }, (input) => {
		if (!Array.isArray(input)) return inner.check(input);
		return input.length === 1 ? inner.check(input[0]) : refuse('invalid', message);
	});
}
