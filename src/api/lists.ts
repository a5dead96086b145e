import type { Call } from './api.js';
import { List } from './records.js';
import { char, nullable } from './schema/fields.js';
import * as t from './schema/record.js';
import { fieldSet, type Infer } from './schema.js';

/** Service document, "Lists". Assumption: both texts have at most 255 characters. A PUT keeps what it does not give (api-decisions 11). */
export const listFields = fieldSet({ name: char({ max: 255 }), email_reason: char({ max: 255 }) });

/** What a list has beyond the document. */
export const ListDetails = t.named(
	'ListDetails',
	t.record({
		id: t.needed(t.id),
		/** The name that recipients read; null: `name`. */
		public_name: t.needed(t.orNull(t.text)),
	}),
);
export type ListDetails = Infer<typeof ListDetails>;

export const listDetailsFields = fieldSet({
	public_name: nullable(char({ max: 255, allowBlank: true })),
});
export type ListDetailsInput = Infer<typeof listDetailsFields>;

/** `is_new` false: it was there before the first call with this idempotency key. */
export const AddedList = t.named('AddedList', t.record({ is_new: t.needed(t.flag), list: t.needed(List) }));
export type AddedList = Infer<typeof AddedList>;

/** Details of lists. Throws `not_found` and `invalid`. */
export interface ListsPlus {
	/**
	 * Adds the list, unless there is one of its name: then that one, as it is. One operation: of several at once, one adds. A
	 * repeat with the idempotency key of the call that added it says so again; `unprocessable`: the key is another request's.
	 */
	add(input: Infer<typeof listFields>, call?: Call): Promise<AddedList>;
	get(id: number, call?: Call): Promise<ListDetails>;
	patch(id: number, input: Partial<ListDetailsInput>, call?: Call): Promise<ListDetails>;
}
