/** `mailctl engine bounces`: mails that came back. */
import { type CommandGroup, command } from '../command.js';
import type { Place, Report, ReportedRecipient, ReturnedMessage } from '../connect/bounces.js';
import { clean } from '../render/clean.js';

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
		const { explainMail } = await import('../connect/bounces.js');
		const report = explainMail(bytes);
		const { format } = cx.out;
		const isForPeople = (format === 'table' || format === 'wide') && cx.globals.fields === undefined;
		if (!isForPeople) return cx.out.document(report);
		await cx.out.raw(`${linesOf(report).map(clean).join('\n')}\n`);
	},
});

export const bounces: CommandGroup = {
	name: 'bounces',
	summary: 'mails that came back',
	commands: [explain],
};

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
