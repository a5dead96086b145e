/** `mailctl engine bounces explain`: the meaning of returned mails. */

import type { Explained, Report } from '../../../connect/bounces.js';
import { command } from '../../../frame/command.js';
import { mailctl } from '../../../frame/command-line.js';
import type { CommandContext } from '../../../frame/context.js';
import { UsageError } from '../../../frame/errors.js';
import { FolderGiven } from '../../../frame/sources.js';
import { clean } from '../../../render/clean.js';
import type { Columns } from '../../../render/columns.js';
import { linesOf } from './explained.js';

export const explain = command({
	name: 'explain',
	summary: 'say what mails that came back mean; nothing is stored',
	description:
		'FILE is one mail as it arrived, with its header, or an mbox, whose first line begins with "From "; - reads standard input. What is printed of an mbox is a list, however many mails it has, and the lines of each are counted from its own first. Delivery status notifications (RFC 3464), feedback reports (RFC 5965), automatic answers (RFC 3834), the JSON of Amazon SES and the forms of mail systems that keep to none of these are told apart, with the place in the file and the rule that decided. Only a hard bounce makes an address bad. It needs no database, and goes to no deployment.',
	needsNoDatabase: true,
	args: [{ name: 'file', summary: 'one mail, or an mbox; - reads standard input', of: 'file', ask: 'File:' }],
	output:
		'{"kind": "bounce" | "delivery_notice", "reporting_mta", "envelope_id", "recipients": [{"address", "original_address", "action", "status", "reply_code", "diagnostic", "remote_mta", "hard", "why", "form", "place": {"part", "type", "line"}}], "returned": {"message_id", "subject", "to", "x_headers", "place"}}, {"kind": "complaint" | "feedback", "feedback_type", "recipients": [addresses], "user_agent", "envelope_id", "returned", "place"}, {"kind": "auto_reply", "why", "place"} or {"kind": "not_a_report", "why"}; of an mbox an array of these',
	examples: [
		'mailctl engine bounces explain bounce.eml',
		'mailctl engine bounces explain bounce.eml -o json',
	],
	run: async (cx, { args }) => {
		const bytes = await readFile(cx, args.file);
		const { explainFile } = await import('../../../connect/bounces.js');
		const explained = await explainFile(bytes);
		const { format } = cx.out;
		const isForPeople = (format === 'table' || format === 'wide') && cx.globals.fields === undefined;
		if (isForPeople) return cx.out.raw(textOf(explained));
		if (explained.kind === 'mail') return cx.out.document(explained.report);
		await cx.out.rows(explained.reports, columns, { all: true });
	},
});

async function readFile(cx: CommandContext, file: string): Promise<Buffer> {
	try {
		return await cx.sources.file(file, 'file').bytes();
	} catch (error) {
		if (!(error instanceof FolderGiven)) throw error;
		throw new UsageError(error.message, {
			hint: [
				'explain takes one file; of a folder or a Maildir ',
				mailctl('engine', 'bounces', 'ingest', file, '--dry-run'),
				' says what it holds',
			],
			cause: error,
		});
	}
}

function textOf(explained: Explained): string {
	const blockOf = (report: Report) => `${linesOf(report).map(clean).join('\n')}\n`;
	if (explained.kind === 'mail') return blockOf(explained.report);
	return explained.reports.map((report, at) => `Mail ${at + 1}: ${blockOf(report)}`).join('\n');
}

const columns: Columns<Report> = ['kind', 'recipients', 'returned', 'place', 'why'].map((key) => ({
	key,
	header: key.toUpperCase(),
	// Each kind has keys of its own.
	value: (report) => Object.entries(report).find(([name]) => name === key)?.[1],
}));
