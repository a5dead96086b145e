/** Shared by the checks of a run: the paths of the service document, the run's names, and its records. */
import { isRecord } from '../../api/json.js';
import type { CommandContext } from '../frame/context.js';
import { unexpected } from './assertions.js';
import type { Answer } from './caller.js';
import type { CreatedRecords } from './created-records.js';
import { Broken, type Probe, Skipped } from './model.js';
import type { RunNames } from './names.js';

/** Service document, "Endpoints"; stated here again, for this is a check from outside. */
export const paths = {
	lists: '/sub/lists/',
	fields: '/sub/fields/',
	webhooks: '/webhooks/',
	report: '/stat/reports/events-report/',
	send: '/message/send/',
	list: (id: number) => `/sub/lists/${id}/`,
	subscribers: (list: number) => `/sub/lists/${list}/subscribers/`,
} as const;

/** No deployment has so many records; it fits 32 bits, as a larger id may be refused for its size. */
export const unknownId = 2_147_483_647;

export interface CheckContext {
	readonly names: RunNames;
	readonly records: CreatedRecords;
	/** There is a token to be refused. */
	readonly hasToken: boolean;
	/** `--send-to` and `--from`. */
	readonly mail: { to: string; from: string } | null;
	readonly connection: CommandContext['connection'];
	readonly signal: AbortSignal;
	/** A list of the run's own for its subscribers, made on first use. Throws `Broken` when that fails, then `Skipped`. */
	list(probe: Probe): Promise<number>;
	/** The variable of the run's own field; null where the field cannot be made. */
	variable(probe: Probe): Promise<string | null>;
}

export type CheckContextOptions = Omit<CheckContext, 'list' | 'variable'>;

/**
 * For one run. Its list and its field are made by the first check that needs them, once, whatever comes of it, and
 * are among its records, which the clean-up deletes.
 */
export function createCheckContext(options: CheckContextOptions): CheckContext {
	let list: Promise<Made> | null = null;
	let isTold = false;
	let variable: Promise<string | null> | null = null;
	const { names, records } = options;
	return {
		...options,
		list: async (probe) => {
			list ??= makeList(probe, records, `${names.list}-subscribers`);
			const made = await list;
			if (made.kind === 'made') return made.id;
			// The first check that needs the list fails, so that the fault is reported once; the others are skipped.
			if (isTold) throw new Skipped('no list could be made to try them in');
			isTold = true;
			throw new Broken(`no list could be made: ${made.why}`);
		},
		variable: (probe) => {
			variable ??= makeField(probe, records, `${names.variable}_meta`);
			return variable;
		},
	};
}

type Made = { kind: 'made'; id: number } | { kind: 'failed'; why: string };

/** A slot for a value that one check of a row creates and the next ones need. */
export function slot<T>(maker: string): { set(value: T): void; get(): T } {
	let held: { value: T } | null = null;
	return {
		set: (value) => {
			held = { value };
		},
		get: () => {
			if (held === null) throw new Skipped(`${maker} made nothing to try it with`);
			return held.value;
		},
	};
}

/** Reads the list again: subscribers are put only into a list with the run's name. */
async function makeList(probe: Probe, records: CreatedRecords, name: string): Promise<Made> {
	const body = { name, email_reason: 'a check of this deployment' };
	const answer = await records.create(probe, 'list', { method: 'POST', path: paths.lists, body });
	const id = idOf(answer);
	if (id === null) return { kind: 'failed', why: unexpected(answer, 201) };
	const stored = await probe.call({ method: 'GET', path: paths.list(id) });
	if (isRecord(stored.json) && stored.json['name'] === name) return { kind: 'made', id };
	return { kind: 'failed', why: `list ${id}, said to be the new one, has another name` };
}

async function makeField(probe: Probe, records: CreatedRecords, variable: string): Promise<string | null> {
	const body = { variable, name: 'Smoke' };
	const answer = await records.create(probe, 'field', { method: 'POST', path: paths.fields, body });
	return idOf(answer) === null ? null : variable;
}

/** The id of a created record; null where the POST was refused. */
function idOf({ status, json }: Answer): number | null {
	const id = isRecord(json) ? json['id'] : null;
	return status < 300 && typeof id === 'number' ? id : null;
}
