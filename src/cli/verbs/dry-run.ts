import type { Api } from '../../api/api.js';
import { type FieldErrors, invalid } from '../../api/errors.js';
import { texts } from '../../api/schema/texts.js';
import type { CommandContext } from '../frame/context.js';
import { explained, type Refusal } from './refusals.js';

interface Checked {
	parse(
		body: unknown,
		mode: 'create' | 'patch',
	): { kind: 'valid'; value: unknown } | { kind: 'invalid'; errors: FieldErrors };
}

interface Foresight extends Refusal {
	fields: Checked;
	mode: 'create' | 'patch';
	/** Errors that a mailctl server would answer, as far as reading shows them. */
	beside?: () => Promise<FieldErrors>;
}

/**
 * Ends as `write` would, exit 5 for refused values. On a database of this machine `write` runs, and the connection of a
 * dry run undoes it. A mailctl server gets no write: schema and reads are checked here. On other deployments nothing is
 * checked.
 */
export async function foresee(
	cx: CommandContext,
	write: (api: Api) => Promise<unknown>,
	{ fields, mode, beside, ...refusal }: Foresight,
): Promise<void> {
	const { api, local } = await cx.connection();
	if (local !== null) return void (await explained(write(api), refusal));
	if ((await api.capabilities()).service !== 'mailctl') return;
	const parsed = fields.parse(refusal.input, mode);
	const shape = parsed.kind === 'invalid' ? parsed.errors : {};
	const errors = { ...shape, ...(await beside?.()) };
	if (Object.keys(errors).length > 0) await explained(Promise.reject(invalid(errors)), refusal);
}

/** The complaint about a value of which there is one already; nothing where it is another one's own. */
export async function notTaken<T>(
	records: AsyncIterable<T>,
	{ field, isTaken }: { field: string; isTaken: (record: T) => boolean },
): Promise<FieldErrors> {
	for await (const record of records)
		if (isTaken(record)) return { [field]: [{ code: 'unique', message: texts.unique }] };
	return {};
}
