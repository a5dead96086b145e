/** `mailctl engine bounces`: mails that came back. */
import { type CommandGroup, command } from '../../command.js';
import type { Place, Report, ReportedRecipient, ReturnedMessage } from '../../connect/bounces.js';
import type { IngestCounts } from '../../connection.js';
import type { CommandContext } from '../../context.js';
import { CliError, UsageError } from '../../errors.js';
import { exits } from '../../exit.js';
import { clean } from '../../render/clean.js';

const explain = command({
	name: 'explain',
	summary: 'say what a mail that came back means; nothing is stored',
	description:
		'FILE is one mail as it arrived, with its header; - reads standard input. Delivery status notifications (RFC 3464), feedback reports (RFC 5965), automatic answers (RFC 3834) and the forms of mail systems that keep to none of these are told apart, with the place in the file and the rule that decided. Only a hard bounce makes an address bad. It needs no database, and goes to no deployment.',
	args: [{ name: 'file', summary: 'one mail; - reads standard input' }],
	output:
		'{"kind": "bounce" | "delivery_notice", "reporting_mta", "envelope_id", "recipients": [{"address", "original_address", "action", "status", "reply_code", "diagnostic", "remote_mta", "hard", "why", "form", "place": {"part", "type", "line"}}], "returned": {"message_id", "subject", "to", "x_headers", "place"}}, {"kind": "complaint" | "feedback", "feedback_type", "recipients": [addresses], "user_agent", "envelope_id", "returned", "place"}, {"kind": "auto_reply", "why", "place"} or {"kind": "not_a_report", "why"}',
	examples: [
		'mailctl engine bounces explain bounce.eml',
		'mailctl engine bounces explain bounce.eml -o json',
	],
	run: async (cx, { args }) => {
		const bytes = await cx.sources.file(args.file, 'file').bytes();
		const { explainMail } = await import('../../connect/bounces.js');
		const report = explainMail(bytes);
		const { format } = cx.out;
		const isForPeople = (format === 'table' || format === 'wide') && cx.globals.fields === undefined;
		if (!isForPeople) return cx.out.document(report);
		await cx.out.raw(`${linesOf(report).map(clean).join('\n')}\n`);
	},
});

const ingest = command({
	name: 'ingest',
	// A new one would know no message, and the mail would be gone as one that nobody sent.
	createsDatabase: false,
	summary: 'take mails that came back into the database',
	description:
		'SOURCE is a mail, an mbox, a folder of such files, a Maildir, or - for standard input. A bounce finds its message by the signed return path it came back to (the setting bounce_address), else by the Message-ID of what was returned, and then its recipient among those of that message alone: no bounce speaks against anybody else. Hard bounces and complaints suppress the address and make its subscribers inactive; soft ones count. The same bounce counts once. Of a Maildir the mails of new are read, and moved to cur once they are recorded. A file of a folder that cannot be read is told and stays, and keeps no other waiting: the exit code is 9 then. As the program a mail server hands mail to it ends with 0 for any mail that was read, a bounce or not, and with 75 where the database is locked, full, failing or not there: the mail server then tries again.',
	args: [{ name: 'source', summary: 'a file, a folder or a Maildir; - reads standard input' }],
	writes: true,
	output:
		'{"read", "bounces", "complaints", "duplicates", "notices", "auto_replies", "unmatched", "not_reports", "in_flight", "unreadable"}',
	exits: [9, 75],
	examples: [
		'mailctl engine bounces ingest bounce.eml',
		'mailctl engine bounces ingest - < bounce.eml',
		'mailctl engine bounces ingest bounce.eml --dry-run -o json',
	],
	run: async (cx, { args }) => {
		const counts = await taken(cx, args.source);
		if (cx.dryRun) return cx.wouldDo(`take in ${sentenceOf(counts)}`, counts);
		await cx.out.document(counts, sentenceOf(counts));
		if (counts.in_flight > 0)
			throw tryLater(`${counts.in_flight} of the messages are being sent at this moment`);
		if (counts.unreadable > 0)
			throw new CliError('unreadable', exits.partly, `${counts.unreadable} of the files could not be read`);
	},
});

export const bounces: CommandGroup = {
	name: 'bounces',
	summary: 'mails that came back',
	commands: [ingest, explain],
};

async function taken(cx: CommandContext, source: string): Promise<IngestCounts> {
	const from = source === '-' ? { stream: cx.sources.stdin('source') } : { path: source };
	const unreadable: string[] = [];
	try {
		const engine = await cx.local();
		return await engine.ingestBounces({
			from,
			dryRun: cx.dryRun,
			signal: cx.signal,
			onUnreadable: (file, code) => unreadable.push(`${file}: ${whyUnreadable(code)}`),
		});
	} catch (error) {
		// Who hands over a mail cannot answer; and a disk that is not mounted yet will be.
		if (source === '-' && error instanceof Error && error.name === 'DatabaseMissing')
			throw tryLater(error.message, error);
		throw endOf(error);
	} finally {
		for (const line of unreadable) await cx.warn(line);
	}
}

/** Database trouble of any kind passes, and a mail server that is told so keeps the mail. */
function endOf(error: unknown): unknown {
	if (!(error instanceof Error)) return error;
	const code = 'code' in error ? String(error.code) : '';
	if (error.name === 'StoreError' || error.name === 'SqliteError') return tryLater(error.message, error);
	// A file of the source that cannot be read; whatever else fails is none of ours to name.
	if (!('path' in error) || !code.startsWith('E')) return error;
	// Of a Maildir: recorded, and it cannot be put where the read ones are.
	if ('dest' in error)
		return new UsageError(`source: ${String(error.path)} cannot be moved to cur: ${code}`, { cause: error });
	return new UsageError(`source: ${String(error.path)}: ${whyUnreadable(code)}`, { cause: error });
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

const words: readonly (readonly [Exclude<keyof IngestCounts, 'read'>, string])[] = [
	['bounces', 'bounces'],
	['complaints', 'complaints'],
	['duplicates', 'known already'],
	['notices', 'notices'],
	['auto_replies', 'automatic answers'],
	['unmatched', 'about no message of ours'],
	['not_reports', 'no reports'],
	['in_flight', 'about messages being sent'],
	['unreadable', 'not readable'],
];

/** `3 mails: 2 bounces, 1 no reports`: what there is none of is left out. */
function sentenceOf(counts: IngestCounts): string {
	const parts = words.filter(([name]) => counts[name] > 0).map(([name, word]) => `${counts[name]} ${word}`);
	const mails = `${counts.read} ${counts.read === 1 ? 'mail' : 'mails'}`;
	return parts.length === 0 ? mails : `${mails}: ${parts.join(', ')}`;
}

function linesOf(report: Report): string[] {
	switch (report.kind) {
		case 'bounce':
		case 'delivery_notice': {
			const what = report.kind === 'bounce' ? 'a bounce' : 'a notice on delivery; nothing bounced';
			const by = report.reporting_mta === null ? '' : `, reported by ${report.reporting_mta}`;
			return [
				`${what}${by}`,
				...report.recipients.flatMap(recipientLines),
				...returnedLines(report.returned),
			];
		}
		case 'complaint':
		case 'feedback': {
			const what = report.kind === 'complaint' ? 'a complaint' : 'feedback, and no complaint';
			const who = report.recipients.length === 0 ? 'nobody named' : report.recipients.join(', ');
			return [
				`${what}: ${report.feedback_type}`,
				`  from: ${who}`,
				`  found: ${placed(report.place)}, RFC 5965`,
				...returnedLines(report.returned),
			];
		}
		case 'auto_reply':
			return [
				'an automatic answer; nothing bounced',
				`  rule: ${report.why}`,
				`  found: ${placed(report.place)}`,
			];
		case 'not_a_report':
			return [`no report: ${report.why}`];
		default:
			return report satisfies never;
	}
}

function recipientLines(one: ReportedRecipient): string[] {
	const fate = one.action === 'failed' ? (one.hard ? 'hard bounce' : 'soft bounce') : one.action;
	const codes = [one.reply_code, one.status].filter((code) => code !== null).join(' ');
	const sentTo = one.original_address;
	return [
		`${one.address}: ${fate}`,
		...(sentTo === null || sentTo === one.address ? [] : [`  sent to: ${sentTo}`]),
		`  codes: ${codes === '' ? 'none' : codes}`,
		...(one.diagnostic === null ? [] : [`  said: ${one.diagnostic}`]),
		...(one.remote_mta === null ? [] : [`  by: ${one.remote_mta}`]),
		`  rule: ${one.why}`,
		`  found: ${placed(one.place)}, ${one.form}`,
	];
}

function returnedLines(returned: ReturnedMessage | null): string[] {
	if (returned === null) return ['the message itself did not come back'];
	const { message_id, subject, to, place } = returned;
	return [
		'the message that came back',
		`  Message-ID: ${message_id ?? 'none'}`,
		`  subject: ${subject ?? 'none'}`,
		...(to.length === 0 ? [] : [`  to: ${to.join(', ')}`]),
		`  found: ${placed(place)}`,
	];
}

function placed({ part, type, line }: Place): string {
	return `line ${line}, part ${part} (${type})`;
}
