import { addAbortSignal } from 'node:stream';
import { codeOf, StoreError, systemReason } from '../../../api/errors.js';
import { DatabaseMissing } from '../../../store/errors.js';
import type { Place, Report, ReturnedMessage } from '../../connect/bounces.js';
import { type CommandGroup, command } from '../../frame/command.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { IngestCounts, RecordedBounce } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { isForPeople } from '../../frame/globals.js';
import { inputName } from '../../frame/sources.js';
import { clean } from '../../render/clean.js';
import { answers, type Columns } from '../../render/columns.js';
import { counted } from '../../render/units.js';

const countNames = [
	...(['read', 'bounces', 'complaints', 'duplicates', 'notices', 'auto_replies', 'unmatched'] as const),
	...(['not_reports', 'in_flight', 'unreadable'] as const),
] as const;

const ingest = command({
	name: 'ingest',
	createsDatabase: false,
	summary: 'record returned mails (bounces, complaints)',
	description:
		'Matches each mail to its message, marks the message as bounced, and suppresses the address after a hard ' +
		'bounce or complaint. Also reads notifications of Amazon SES (JSON). A mail server may pipe mail into this ' +
		'command: exit code 75 means try again. In a Maildir, mailctl moves each processed mail from new to cur.',
	args: [
		{
			name: 'source',
			summary: 'a mail, an mbox, a folder of them, a Maildir, or - for standard input',
			of: 'path',
			ask: 'Bounces:',
		},
	],
	writes: true,
	...answers(countNames),
	exits: [9, 75],
	examples: [
		'mailctl engine bounces ingest bounce.eml',
		'mailctl engine bounces ingest - < bounce.eml',
		'mailctl engine bounces ingest bounce.eml --dry-run -o json',
	],
	// If a mail server pipes a mail to this command, exit code 75 (EX_TEMPFAIL) makes the server try again. After other
	// codes, the server rejects the mail, and the mail is lost. Only a person presses Ctrl-C, so Ctrl-C ends with 130.
	whenStopped: (reason, { args }) =>
		inputName(args.source) === '-' && reason instanceof CliError && reason.exit !== exits.interrupted
			? tryLater(`stopped before all mails were recorded (${reason.message})`, reason)
			: reason,
	run: async (cx, { args }) => {
		const kinds = { hard_bounce: 0, soft_bounce: 0, complaint: 0 };
		const counts = await ingestFrom(cx, inputName(args.source), ({ effect }) => {
			kinds[effect] += 1;
		});
		const sentence = sentenceOf({ ...counts, ...kinds });
		if (cx.dryRun) await cx.wouldDo(`record ${sentence}`, { ingest: args.source, ...counts });
		else await cx.out.document(counts, sentence);
		if (counts.unmatched > 0) await cx.hint(unmatchedHint);
		if (cx.dryRun) return;
		if (counts.in_flight > 0)
			throw tryLater(`${counted(counts.in_flight, 'mail')} about messages that are being sent right now`);
		if (counts.unreadable > 0)
			throw new CliError(
				'unreadable',
				exits.partly,
				`${counted(counts.unreadable, 'file')} could not be read`,
			);
	},
});

const unmatchedHint: Hint = [
	'an unmatched mail is about a deleted message, or about a message of another program; ',
	mailctl('engine', 'bounces', 'explain', 'FILE'),
	' shows its contents',
];

type OnRecorded = (recorded: RecordedBounce) => void;

async function ingestFrom(cx: CommandContext, source: string, onRecorded: OnRecorded): Promise<IngestCounts> {
	const from =
		source === '-' ? { stream: addAbortSignal(cx.signal, cx.sources.stdin('source')) } : { path: source };
	const unreadable: string[] = [];
	try {
		const engine = await cx.local();
		return await engine.ingestBounces({
			...{ from, dryRun: cx.dryRun, signal: cx.signal, onRecorded },
			onUnreadable: (file, code) => unreadable.push(`${file}: ${whyUnreadable(code)}`),
		});
	} catch (error) {
		// The disk of the database may not be mounted yet, so tell a mail server to try again.
		if (source === '-' && error instanceof DatabaseMissing) throw tryLater(error.message, error);
		throw endOf(error);
	} finally {
		for (const line of unreadable) await cx.warn(line);
	}
}

/** Reports faults of the database as temporary, so that the mail server keeps the mail. */
function endOf(error: unknown): unknown {
	if (!(error instanceof Error)) return error;
	const code = codeOf(error);
	if (error instanceof StoreError || code.startsWith('SQLITE_')) return tryLater(error.message, error);
	if (!('path' in error) || !code.startsWith('E')) return error;
	const why =
		'dest' in error ? ` cannot be moved to cur: ${systemReason(error)}` : `: ${whyUnreadable(code)}`;
	return new UsageError(`${String(error.path)}${why}`, { cause: error });
}

function whyUnreadable(code: string): string {
	if (code === 'ENOENT') return 'no such file or folder';
	return code === 'EACCES' ? 'no permission to read it' : code;
}

function tryLater(message: string, cause?: unknown): CliError {
	return new CliError('try_later', exits.tryLater, message, {
		hint: 'nothing is lost: run the command again with the same mails; no mail counts twice',
		retryable: true,
		cause,
	});
}

type Told = Exclude<keyof IngestCounts, 'read' | 'bounces'> | 'hard_bounce' | 'soft_bounce';

const words: Readonly<Record<Told, readonly [one: string, several?: string]>> = {
	hard_bounce: ['hard bounce'],
	soft_bounce: ['soft bounce'],
	complaints: ['complaint'],
	duplicates: ['known already', 'known already'],
	notices: ['notice'],
	auto_replies: ['automatic answer'],
	unmatched: ['about no known message', 'about no known message'],
	not_reports: ['no report'],
	in_flight: ['about a message still being sent', 'about messages still being sent'],
	unreadable: ['not readable', 'not readable'],
};

function sentenceOf(counts: Record<Told | 'read', number>): string {
	const names = Object.keys(words) as Told[];
	const told = names.filter((name) => counts[name] > 0).map((name) => counted(counts[name], ...words[name]));
	const mails = counted(counts.read, 'mail');
	return told.length === 0 ? mails : `${mails}: ${told.join(', ')}`;
}

const explainColumns: Columns<Report> = ['kind', 'recipients', 'returned', 'place', 'why'].map((key) => ({
	key,
	header: key.toUpperCase(),
	value: (report) => Object.entries(report).find(([name]) => name === key)?.[1],
}));

const explain = command({
	name: 'explain',
	summary: 'explain a returned mail',
	description:
		'Reads one mail as it arrived, or an mbox, and shows which line and rule classified each mail. Recognizes ' +
		'delivery status notifications, feedback reports, automatic answers, Amazon SES and the texts of other ' +
		'mail systems. Stores nothing and needs no database.',
	needsNoDatabase: true,
	args: [{ name: 'file', summary: 'a mail, an mbox, or - for standard input', of: 'file', ask: 'File:' }],
	output:
		'{"kind": "bounce" | "delivery_notice", "reporting_mta", "envelope_id", "recipients": [{"address", "original_address", "action", "status", "reply_code", "diagnostic", "remote_mta", "hard", "why", "form", "place": {"part", "type", "line"}}], "returned": {"message_id", "subject", "to", "x_headers", "place"}}, {"kind": "complaint" | "feedback", "feedback_type", "recipients": [addresses], "user_agent", "envelope_id", "returned", "place"}, {"kind": "auto_reply", "why", "place"} or {"kind": "not_a_report", "why"}; for an mbox an array of these',
	examples: [
		'mailctl engine bounces explain bounce.eml',
		'mailctl engine bounces explain bounce.eml -o json',
	],
	run: async (cx, { args: { file } }) => {
		const bytes = await cx.sources.file(file, 'file').bytes();
		const { explainFile } = await import('../../connect/bounces.js');
		const explained = await explainFile(bytes);
		const blockOf = (report: Report) => `${linesOf(report).map(clean).join('\n')}\n`;
		if (explained.kind === 'mail') {
			const { report } = explained;
			return isForPeople(cx) ? cx.out.raw(blockOf(report)) : cx.out.document(report);
		}
		const { reports } = explained;
		if (!isForPeople(cx)) return void (await cx.out.rows(reports, explainColumns, { all: true }));
		await cx.out.raw(reports.map((report, at) => `Mail ${at + 1}: ${blockOf(report)}`).join('\n'));
	},
});

export const bounces: CommandGroup = {
	name: 'bounces',
	summary: 'read returned mails',
	examples: ['mailctl engine bounces ingest bounce.eml', 'mailctl engine bounces explain bounce.eml'],
	commands: [ingest, explain],
};

function linesOf(report: Report): string[] {
	switch (report.kind) {
		case 'bounce':
		case 'delivery_notice': {
			const what = report.kind === 'bounce' ? 'a bounce' : 'a delivery notice; nothing bounced';
			const by = report.reporting_mta === null ? '' : `, reported by ${report.reporting_mta}`;
			const recipients = report.recipients.flatMap((one) => {
				const fate = one.action === 'failed' ? (one.hard ? 'hard bounce' : 'soft bounce') : one.action;
				return block(`${one.address}: ${fate}`, {
					'sent to': one.original_address === one.address ? null : one.original_address,
					codes: [one.reply_code, one.status].filter((code) => code !== null).join(' ') || 'none',
					said: one.diagnostic,
					by: one.remote_mta,
					rule: one.why,
					found: `${placed(one.place)}, ${one.form}`,
				});
			});
			return [`${what}${by}`, ...recipients, ...returnedLines(report.returned)];
		}
		case 'complaint':
		case 'feedback': {
			const what = report.kind === 'complaint' ? 'a complaint' : 'feedback, but not a complaint';
			const from = report.recipients.join(', ') || 'no address named';
			const found = `${placed(report.place)}, RFC 5965`;
			return [
				...block(`${what}: ${report.feedback_type}`, { from, found }),
				...returnedLines(report.returned),
			];
		}
		case 'auto_reply':
			return block('an automatic answer; nothing bounced', { rule: report.why, found: placed(report.place) });
		case 'not_a_report':
			return [`not a report: ${report.why}`];
	}
}

function returnedLines(returned: ReturnedMessage | null): string[] {
	if (returned === null) return ['the message itself did not come back'];
	const { message_id, subject, to, place } = returned;
	return block('the message that came back', {
		'Message-ID': message_id ?? 'none',
		subject: subject ?? 'none',
		to: to.length === 0 ? null : to.join(', '),
		found: placed(place),
	});
}

function block(title: string, facts: Readonly<Record<string, string | null>>): string[] {
	const told = Object.entries(facts).filter(([, text]) => text !== null);
	return [title, ...told.map(([label, text]) => `  ${label}: ${text}`)];
}

function placed({ part, type, line }: Place): string {
	return `line ${line}, part ${part} (${type})`;
}
