/** A batch of a campaign's recipients: a bad shape refuses the whole batch, a bad value only its row. */
import { parseAddress } from '../../api/address.js';
import { type FieldErrors, listFieldErrors } from '../../api/errors.js';
import { maxVariables } from '../../api/messages.js';
import { char, dict, withDefault } from '../../api/schema/fields.js';
import { typeName } from '../../api/schema/python.js';
import { texts } from '../../api/schema/texts.js';
import { fieldSet, type Parsed, required } from '../../api/schema.js';
import { createTurns } from '../../api/sleep.js';
import { placeIn, type RefusedRow, type RowPlace, refusalOf, rowPlaceFields } from './row-place.js';

/** One row of a campaign's batch after the check of its shape: a recipient, or the error. */
export type RecipientRow =
	| {
			kind: 'recipient';
			to: string;
			to_key: string;
			context: Readonly<Record<string, string>>;
			line?: number;
	  }
	| RefusedRow;

/** Recipients with a bad shape that are listed; the answer to a large batch stays small. */
const maxListed = 100;

/** Values that a file may contain by accident; everything else is an error of the program that made the batch. */
const ofValues: ReadonlySet<string> = new Set([
	'blank',
	'max_length',
	'null_characters_not_allowed',
	'surrogate_characters_not_allowed',
]);

// As in a send call: an empty name of a variable is an error.
const declared = fieldSet({
	to: char({ allowBlank: true }),
	context: withDefault(dict(char({ allowBlank: true, trim: 'off' }), { max: maxVariables }), () => ({})),
	...rowPlaceFields,
});

/** One result for each recipient, in order. Nothing stored is read. */
export async function parseRecipients(recipients: unknown): Promise<Parsed<RecipientRow[]>> {
	if (recipients === undefined) return refuse([required]);
	if (!Array.isArray(recipients)) {
		const message = `Expected a list of items but got type "${typeName(recipients)}".`;
		return refuse([{ code: 'not_a_list', message }]);
	}
	const rows: RecipientRow[] = [];
	const misshapen: [string, FieldErrors][] = [];
	const turn = createTurns();
	for (const [index, item] of recipients.entries()) {
		await turn();
		const parsed = parseRecipient(item);
		if (parsed.kind === 'valid') rows.push(parsed.value);
		else if (misshapen.length < maxListed) misshapen.push([String(index), parsed.errors]);
	}
	return misshapen.length === 0 ? { kind: 'valid', value: rows } : refuse(Object.fromEntries(misshapen));
}

/** One recipient. */
export function parseRecipient(item: unknown): Parsed<RecipientRow> {
	const parsed = declared.parse(item, 'create');
	if (parsed.kind === 'invalid') {
		const complaints = listFieldErrors(parsed.errors);
		const [first] = complaints;
		if (first === undefined || complaints.some(({ code }) => !ofValues.has(code))) return parsed;
		return rejected(placeIn(item), first.code, `${first.path}: ${first.message}`);
	}
	const { to, context, refused, ...place } = parsed.value;
	const row = { ...place, to };
	if (refused !== undefined) return { kind: 'valid', value: { ...row, ...refusalOf(refused) } };
	if (to === '') return rejected(row, 'blank', `to: ${texts.blank}`);
	const address = parseAddress(to);
	if (address === null) return rejected(row, 'invalid', `to: ${texts.email}`);
	const { address: text, key } = address;
	return { kind: 'valid', value: { kind: 'recipient', ...place, to: text, to_key: key, context } };
}

function rejected(place: RowPlace, code: string, error: string): Parsed<RecipientRow> {
	return { kind: 'valid', value: { ...place, kind: 'rejected', code, error } };
}

function refuse(errors: FieldErrors[string]): { kind: 'invalid'; errors: FieldErrors } {
	return { kind: 'invalid', errors: { recipients: errors } };
}
