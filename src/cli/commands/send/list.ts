/** `send --list`: the subscribers of a list as the recipients of a job, staged beside the data. */
import type { MailingSpec } from '../../../api/capabilities.js';
import type { List } from '../../../api/records.js';
import type { MailingPlace } from '../../../jobs/mailing-place.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import type { ExitCode } from '../../exit.js';
import { resolveList } from '../../resolve.js';
import { walk } from '../../walk.js';
import { assertAllowed, assertListAllowed } from './allowed.js';
import { beginJob } from './begin.js';
import { warnOfLinks } from './deliver.js';
import { type Job, type JobOptions, runJob } from './job.js';
import { openJob } from './open.js';
import type { SendOptions } from './options.js';
import { wantsPreview } from './preview.js';
import { type Prepared, prepare, specOf } from './request.js';
import type { ResultsHow } from './results.js';
import { previewList, sendTest } from './trial.js';

export async function sendToList(
	cx: CommandContext,
	options: SendOptions,
	text: string,
): Promise<ExitCode | undefined> {
	assertOptions(options);
	const list = await resolveList(await cx.api(), text, { signal: cx.signal });
	const prepared = await prepare(cx, options);
	if (cx.dryRun) return (await import('./dry-list.js')).dryRunList(cx, { prepared, list, options });
	if (wantsPreview(options)) return previewList(cx, { prepared, list, options }).then(() => undefined);
	if (options.testTo !== undefined) {
		assertAllowed(cx, [options.testTo]);
		return sendTest(cx, { prepared, list, options }, options.testTo);
	}
	await assertListAllowed(cx, list);
	const { place, name, isMadeUp } = await beginJob(cx, options, 'a list');
	const spec = listSpec(prepared, list, options);
	const { id } = await openJob(cx, place, { name, spec });
	const subject = prepared.template?.name ?? prepared.request.subject ?? '';
	const { bulk } = options;
	return runJob(cx, {
		...listJob(cx, { place, id, name, list, subject, bulk, options }),
		isMadeUp,
	});
}

/** A job over a list, begun now or earlier. */
export function listJob(
	cx: CommandContext,
	{
		place,
		id,
		name,
		list,
		subject,
		bulk,
		options,
	}: {
		place: MailingPlace;
		id: string;
		name: string;
		list: Pick<List, 'id' | 'name'>;
		subject: string;
		bulk: boolean;
		options: JobOptions;
	},
): Omit<Job, 'isMadeUp'> {
	let rejects: readonly { error: string }[] = [];
	return {
		place,
		id,
		name,
		options,
		of: `list ${list.id} "${list.name}"`,
		counted: 'the list',
		subject,
		stage: async () => {
			({ rejects } = await place.mailings.addList(id, list.id, { signal: cx.signal }));
		},
		hasRejectLines: false,
		findings: async (most) => rejects.slice(0, most).map(({ error }) => error),
		// Addresses were checked when people were added: that a value is missing is all there is to find.
		lacksValues: async () => true,
		sample: (most) => firstOf(cx, list, most),
		writeResults: (path, how) => writeListResults(cx, { place, id }, path, how),
		warn: () => warnOfLinks(cx, { bulk, list: list.name }),
		nobody: `list ${list.id} "${list.name}" has no active subscribers; nothing was sent`,
	};
}

/** Where the service tells of its messages they are asked for; a ledger knows each recipient by itself. */
async function writeListResults(
	cx: CommandContext,
	{ place: { mailings }, id }: { place: MailingPlace; id: string },
	path: string,
	how: ResultsHow,
): Promise<void> {
	const { ext } = await (await cx.api()).capabilities();
	if (ext.messages !== undefined)
		return (await import('./results.js')).writeResults(cx, path, { campaign: id }, how);
	return (await import('./row-results.js')).writeRowResults(cx, { mailings, id }, path, how);
}

async function firstOf(cx: CommandContext, list: { id: number }, most: number): Promise<string[]> {
	const api = await cx.api();
	const shown: string[] = [];
	const people = walk(api.subscribers(list.id), { is_active: true }, { signal: cx.signal, limit: most });
	for await (const { email } of people) shown.push(email);
	return shown;
}

/** The list is in it, so that a job's name cannot go on with another list. */
function listSpec(prepared: Prepared, list: List, options: SendOptions): MailingSpec {
	return { ...specOf(prepared), list_id: list.id, strict_vars: options.strictVars ?? options.bulk };
}

function assertOptions(options: SendOptions): void {
	if (options.to.length > 0)
		throw new UsageError('--to and --list both name recipients; give one', {
			hint: 'a trial to yourself: --list LIST --test-to you@example.com',
		});
	if (options.cc.length + options.bcc.length > 0)
		throw new UsageError('--cc and --bcc do not go with --list: a copy of every message is never meant');
	if (options.idempotencyKey !== undefined)
		throw new UsageError('--idempotency-key does not go with --list; --job NAME plays that part');
	if (options.map.length > 0) throw new UsageError('--map goes with --csv only');
}
