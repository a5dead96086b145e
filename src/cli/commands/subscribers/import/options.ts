import type { MaxErrors } from '../../../../jobs/imports.js';
import type { State } from '../../../../tables/states.js';
import type { OptionValues } from '../../../frame/command.js';
import { UsageError } from '../../../frame/errors.js';
import { importName, tableOptions } from '../../../verbs/importing.js';
import { listOption } from '../lookup.js';

export const importOptions = {
	...listOption,
	...tableOptions,
	map: {
		...tableOptions.map,
		summary:
			'what a column is; COLUMN=state tells who may get mail, FIRST+LAST=name joins two, COLUMN=- leaves one out',
	},
	stateWords: {
		kind: 'list',
		placeholder: 'W=STATE',
		summary: 'words of COLUMN=state: active, unsubscribed, bounced, complained or unconfirmed',
	},
	onConflict: {
		kind: 'choice',
		choices: ['update', 'skip', 'error'],
		default: 'update',
		summary: 'when an address is in the list already',
	},
	createFields: { kind: 'flag', summary: 'make fields of unknown columns' },
	reactivate: {
		kind: 'flag',
		summary: 'subscribers in the file are active again, unless is_active says no; lifts unsubscriptions',
	},
	batchSize: { kind: 'integer', min: 1, max: 100_000, default: 5_000, summary: 'rows a batch' },
	concurrency: {
		kind: 'integer',
		min: 1,
		max: 16,
		default: 8,
		summary: 'requests at a time, on a service that takes rows one by one only',
	},
	rate: {
		kind: 'text',
		placeholder: 'N/s',
		summary: 'at most so many rows a second (10/s), minute (600/m) or hour (100/h)',
	},
	maxErrors: { kind: 'text', placeholder: 'N|N%', summary: 'stop when more rows than this are rejected' },
	resume: { kind: 'flag', summary: 'go on where an earlier run of the same file stopped' },
	job: {
		kind: 'text',
		placeholder: 'NAME',
		summary: 'a name for what comes from standard input or a pipe, so that --resume can go on with it',
	},
} as const;

export type ImportOptions = OptionValues<typeof importOptions>;

export function assertOptions(
	{ file, isOnce }: { file: string; isOnce: boolean },
	options: ImportOptions,
): void {
	const { resume, createFields, ignoreUnknown, job } = options;
	if (createFields && ignoreUnknown)
		throw new UsageError('use either --create-fields or --ignore-unknown, not both');
	if (job !== undefined && !isOnce)
		throw new UsageError(
			'--job names what comes from standard input or a pipe; a file is known by its content',
		);
	if (resume && isOnce && job === undefined)
		throw new UsageError(`--resume wants a file, or --job NAME: ${importName(file)} is not the same twice`);
}

/** `enabled=active,blocklisted=unsubscribed`, several times too; words as `stateOf` finds them. */
export async function parseStateWords(options: ImportOptions): Promise<Readonly<Record<string, State>>> {
	const { plainWord, states } = await import('../../../../tables/states.js');
	const read = (pair: string): [string, State] => {
		const [, word = '', name = ''] = /^(.*)=\s*(\w+)\s*$/s.exec(pair) ?? [];
		const state = states.find((one) => one === name.toLowerCase());
		if (state !== undefined) return [plainWord(word), state];
		throw new UsageError(`--state-words "${pair}" does not end in a state`, {
			hint: `WORD=STATE, where STATE is ${states.toReversed().join(', ')}`,
		});
	};
	return Object.fromEntries(options.stateWords.flatMap((text) => text.split(',')).map(read));
}

export function parseMaxErrors(text: string): MaxErrors {
	const rows = /^\d{1,9}$/.test(text) ? Number(text) : null;
	const percent = /^\d{1,3}(?:\.\d{1,6})?%$/.test(text) ? Number(text.slice(0, -1)) : null;
	if (rows !== null) return { rows };
	if (percent !== null && percent <= 100) return { percent };
	throw new UsageError(`--max-errors "${text}" is neither a number of rows nor a share such as 5%`);
}
