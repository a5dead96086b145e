/** `mailctl engine bounces ingest`: takes returned mails into the database. */
import { addAbortSignal } from 'node:stream';
import { StoreError, systemReason } from '../../../../api/errors.js';
import { DatabaseMissing } from '../../../../store/errors.js';
import { command } from '../../../frame/command.js';
import { type Hint, mailctl } from '../../../frame/command-line.js';
import type { IngestCounts, RecordedBounce } from '../../../frame/connection.js';
import type { CommandContext } from '../../../frame/context.js';
import { CliError, UsageError } from '../../../frame/errors.js';
import { exits } from '../../../frame/exit.js';
import { inputName } from '../../../frame/sources.js';
import { answer } from '../../../render/columns.js';
import { counted } from '../../../render/units.js';

export const ingest = command({
	name: 'ingest',
	// A new database knows no message: the mail would be discarded as unmatched.
	createsDatabase: false,
	summary: 'take mails that came back into the database',
	description:
		'SOURCE is a mail, an mbox, a folder of such files, a Maildir, or - for standard input. A file may also hold what Amazon SES publishes about a bounce or a complaint (JSON as SNS delivers it, one notification a file). A bounce is matched to its message by the signed return path it came back to (the setting bounce_address), else by the Message-ID of the returned mail; it can speak about recipients of that message alone. Where return paths are signed, anybody could have written a bounce that is matched by its Message-ID alone: it counts as soft, and if it names its recipient in the returned mail alone it is only counted (a notice). Hard bounces and complaints suppress the address and make its subscribers inactive; soft ones are counted. The same bounce counts once. Of a Maildir the mails in new are read, and moved to cur once they are recorded. A file that cannot be read stays where it is, the others are read, and the exit code is 9. A mail server may pipe mail into it: it ends with 0 for any mail that it has read, a bounce or not, and with 75 where the database is locked, full, failing or missing, or where it is stopped early: the mail server then tries again.',
	args: [
		{
			name: 'source',
			summary: 'a file, a folder or a Maildir; - reads standard input',
			of: 'path',
			ask: 'Bounces:',
		},
	],
	writes: true,
	columns: answer(
		'read',
		'bounces',
		'complaints',
		'duplicates',
		'notices',
		'auto_replies',
		'unmatched',
		'not_reports',
		'in_flight',
		'unreadable',
	),
	output:
		'{"read", "bounces", "complaints", "duplicates", "notices", "auto_replies", "unmatched", "not_reports", "in_flight", "unreadable"}',
	exits: [9, 75],
	examples: [
		'mailctl engine bounces ingest bounce.eml',
		'mailctl engine bounces ingest - < bounce.eml',
		'mailctl engine bounces ingest bounce.eml --dry-run -o json',
	],
	// A mail server that writes the pipe takes any other code for a refusal, and the mail would be lost. Ctrl-C is a
	// person's.
	whenStopped: (reason, { args }) =>
		inputName(args.source) === '-' && reason instanceof CliError && reason.exit !== exits.interrupted
			? tryLater(`stopped before all was taken in (${reason.message})`, reason)
			: reason,
	run: async (cx, { args }) => {
		const recorded = createTally();
		const counts = await taken(cx, inputName(args.source), recorded.add);
		const sentence = sentenceOf(counts, recorded);
		if (cx.dryRun) await cx.wouldDo(`take in ${sentence}`, { ingest: args.source, ...counts });
		else await cx.out.document(counts, sentence);
		await sayWhose(cx, recorded);
		if (counts.unmatched > 0) await cx.hint(unmatchedHint);
		if (cx.dryRun) return;
		if (counts.in_flight > 0)
			throw tryLater(`${counted(counts.in_flight, 'mail')} about what is being sent at this moment`);
		if (counts.unreadable > 0)
			throw new CliError('unreadable', exits.partly, `${counts.unreadable} of the files could not be read`);
	},
});

const unmatchedHint: Hint = [
	'no known message: another program or database sent it, or it is older than the setting keep_messages; ',
	mailctl('engine', 'bounces', 'explain', 'FILE'),
	' shows what it says',
];

/** The number of records by kind, and the recipients of the first few. */
interface Tally {
	add(recorded: RecordedBounce): void;
	readonly counts: Record<RecordedBounce['effect'], number>;
	/** In the order of recording, up to the number that is printed. */
	readonly first: RecordedBounce[];
}

/** The most bounces shown one by one; `suppressions list` has all. */
const mostTold = 5;

function createTally(): Tally {
	const counts = { hard_bounce: 0, soft_bounce: 0, complaint: 0 };
	const first: RecordedBounce[] = [];
	const add = (recorded: RecordedBounce) => {
		counts[recorded.effect] += 1;
		if (first.length < mostTold) first.push(recorded);
	};
	return { add, counts, first };
}

/** For a person: the output of a mail server's pipe has no reader. */
async function sayWhose(cx: CommandContext, { counts, first }: Tally): Promise<void> {
	const all = counts.hard_bounce + counts.soft_bounce + counts.complaint;
	if ((cx.out.format !== 'table' && cx.out.format !== 'wide') || all > first.length) return;
	for (const { address, effect } of first) await cx.note(`${address}: ${fates[effect]}`);
}

const fates: Readonly<Record<RecordedBounce['effect'], string>> = {
	hard_bounce: 'a hard bounce, no mail goes to it from now on',
	soft_bounce: 'a soft bounce, which is counted',
	complaint: 'a complaint, no mail goes to it from now on',
};

async function taken(cx: CommandContext, source: string, onRecorded: Tally['add']): Promise<IngestCounts> {
	const from =
		source === '-' ? { stream: addAbortSignal(cx.signal, cx.sources.stdin('source')) } : { path: source };
	const unreadable: string[] = [];
	try {
		const engine = await cx.local();
		return await engine.ingestBounces({
			from,
			dryRun: cx.dryRun,
			signal: cx.signal,
			onRecorded,
			onUnreadable: (file, code) => unreadable.push(`${file}: ${whyUnreadable(code)}`),
		});
	} catch (error) {
		// The mail server that writes the pipe cannot mend it; and a disk may not be mounted yet.
		if (source === '-' && error instanceof DatabaseMissing) throw tryLater(error.message, error);
		throw endOf(error);
	} finally {
		for (const line of unreadable) await cx.warn(line);
	}
}

/** Database faults are temporary: on a temporary error the mail server keeps the mail. */
function endOf(error: unknown): unknown {
	if (!(error instanceof Error)) return error;
	const code = 'code' in error ? String(error.code) : '';
	if (error instanceof StoreError || code.startsWith('SQLITE_')) return tryLater(error.message, error);
	// A file of the source that cannot be read. Other errors pass unchanged.
	if (!('path' in error) || !code.startsWith('E')) return error;
	// Of a Maildir: recorded, and it cannot be put where the read ones are.
	if ('dest' in error)
		return new UsageError(`${String(error.path)} cannot be moved to cur: ${systemReason(error)}`, {
			cause: error,
		});
	return new UsageError(`${String(error.path)}: ${whyUnreadable(code)}`, { cause: error });
}

function whyUnreadable(code: string): string {
	if (code === 'ENOENT') return 'no such file or folder';
	return code === 'EACCES' ? 'no permission to read it' : code;
}

function tryLater(message: string, cause?: unknown): CliError {
	return new CliError('try_later', exits.tryLater, message, {
		hint: 'nothing is lost: bring the same mails again, what was recorded does not count twice',
		retryable: true,
		cause,
	});
}

type Counted = Exclude<keyof IngestCounts, 'read' | 'bounces'> | 'hard_bounce' | 'soft_bounce';

const words: readonly (readonly [name: Counted, one: string, several: string])[] = [
	['hard_bounce', 'hard bounce', 'hard bounces'],
	['soft_bounce', 'soft bounce', 'soft bounces'],
	['complaints', 'complaint', 'complaints'],
	['duplicates', 'known already', 'known already'],
	['notices', 'notice', 'notices'],
	['auto_replies', 'automatic answer', 'automatic answers'],
	['unmatched', 'about no known message', 'about no known message'],
	['not_reports', 'no report', 'no reports'],
	['in_flight', 'about a message being sent', 'about messages being sent'],
	['unreadable', 'not readable', 'not readable'],
];

/** `3 mails: 2 hard bounces, 1 no report`, without the counts of 0. */
function sentenceOf(counts: IngestCounts, recorded: Tally): string {
	const all = { ...counts, ...recorded.counts };
	const parts = words.flatMap(([name, one, several]) =>
		all[name] > 0 ? [counted(all[name], one, several)] : [],
	);
	const mails = counted(counts.read, 'mail');
	return parts.length === 0 ? mails : `${mails}: ${parts.join(', ')}`;
}
