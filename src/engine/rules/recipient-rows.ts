/** A batch of a mailing's recipients: what has the wrong shape refuses it whole, what has a bad value its row alone. */
import { parseAddress } from '../../api/address.js';
import type { FieldErrors } from '../../api/errors.js';
import { char } from '../../api/schema/char.js';
import { dict } from '../../api/schema/containers.js';
import { withDefault } from '../../api/schema/field.js';
import { typeName } from '../../api/schema/python.js';
import { fieldSet, type Parsed, required } from '../../api/schema.js';
import type { RecipientRow } from '../../store/mailings.js';
import { complaintsOf } from './complaints.js';
import { placeIn, type RowPlace, refusalOf, rowPlaceFields } from './row-place.js';

/** Recipients whose shape is complained about by name; the answer to a large batch stays small. */
const maxListed = 100;

/** Values that a file may hold by accident; everything else is a mistake of the program that made the batch. */
const ofValues: ReadonlySet<string> = new Set([
	'blank',
	'max_length',
	'null_characters_not_allowed',
	'surrogate_characters_not_allowed',
]);

// As in a send call: a variable that says nothing is something to say.
const declared = fieldSet({
	to: char({ allowBlank: true }),
	context: withDefault(dict(char({ allowBlank: true, trim: 'off' })), () => ({})),
	...rowPlaceFields,
});

/** One row a recipient, in order. Pure: nothing stored is looked at. */
export function parseRecipients(recipients: unknown): Parsed<RecipientRow[]> {
	if (recipients === undefined) return refuse([required]);
	if (!Array.isArray(recipients)) {
		const message = `Expected a list of items but got type "${typeName(recipients)}".`;
		return refuse([{ code: 'not_a_list', message }]);
	}
	const rows: RecipientRow[] = [];
	const misshapen: [string, FieldErrors][] = [];
	for (const [index, item] of recipients.entries()) {
		const parsed = parseRecipient(item);
		if (parsed.kind === 'valid') rows.push(parsed.value);
		else if (misshapen.length < maxListed) misshapen.push([String(index), parsed.errors]);
	}
	return misshapen.length === 0 ? { kind: 'valid', value: rows } : refuse(Object.fromEntries(misshapen));
}

function parseRecipient(item: unknown): Parsed<RecipientRow> {
	const parsed = declared.parse(item, 'create');
	if (parsed.kind === 'invalid') {
		const complaints = complaintsOf(parsed.errors);
		const [first] = complaints;
		if (first === undefined || complaints.some(({ code }) => !ofValues.has(code))) return parsed;
		return rejected(placeIn(item), first.code, `${first.path}: ${first.message}`);
	}
	const { to, context, refused, ...place } = parsed.value;
	const row = { ...place, to };
	if (refused !== undefined) return { kind: 'valid', value: { ...row, ...refusalOf(refused) } };
	if (to === '') return rejected(row, 'blank', 'to: This field may not be blank.');
	const address = parseAddress(to);
	if (address === null) return rejected(row, 'invalid', 'to: Enter a valid email address.');
	const { address: text, key } = address;
	return { kind: 'valid', value: { kind: 'recipient', ...place, to: text, to_key: key, context } };
}

function rejected(place: RowPlace, code: string, error: string): Parsed<RecipientRow> {
	return { kind: 'valid', value: { ...place, kind: 'rejected', code, error } };
}

function refuse(errors: FieldErrors[string]): { kind: 'invalid'; errors: FieldErrors } {
	return { kind: 'invalid', errors: { recipients: errors } };
}
