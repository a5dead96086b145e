/** What the fields of known people give to a table's rows. */
import { type EmailKey, emailKey } from '../../../api/address.js';
import { AddressSet } from '../../../api/address-set.js';
import type { CommandContext } from '../../frame/context.js';
import { walk } from '../../verbs/listing.js';

/** Whether the person with that address has a value for the variable. */
type FieldValues = (key: EmailKey, variable: string) => boolean;

/**
 * What the fields of known people give to these variables, as a campaign of ours looks it up when it stages rows: an address
 * in one list is that subscriber, one in several lists is none of them. Every subscriber is read where one of the
 * variables is a field: 11 to 21 bytes each, and as much a value.
 */
export async function readFieldValues(
	cx: CommandContext,
	variables: readonly string[],
): Promise<FieldValues> {
	const fields = await fieldsAmong(cx, variables);
	const valued = new Map(fields.map((name) => [name, new AddressSet()]));
	const met = new AddressSet();
	const several = new AddressSet();
	if (fields.length > 0)
		for await (const { email, meta } of everybody(cx)) {
			const key = emailKey(email);
			if (!met.add(key)) several.add(key);
			for (const [name, people] of valued) if ((meta[name] ?? null) !== null) people.add(key);
		}
	return (key, variable) => valued.get(variable)?.has(key) === true && !several.has(key);
}

async function fieldsAmong(cx: CommandContext, variables: readonly string[]): Promise<string[]> {
	if (variables.length === 0) return [];
	const api = await cx.api();
	const found: string[] = [];
	for await (const { variable } of walk(api.fields, {}, { signal: cx.signal }))
		if (variables.includes(variable)) found.push(variable);
	return found;
}

async function* everybody(cx: CommandContext) {
	const api = await cx.api();
	const { signal } = cx;
	for await (const { id } of walk(api.lists, {}, { signal }))
		yield* walk(api.subscribers(id), {}, { signal });
}
