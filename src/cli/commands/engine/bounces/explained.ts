/** The meaning of a returned mail, as lines for a person. */
import type { Place, Report, ReportedRecipient, ReturnedMessage } from '../../../connect/bounces.js';

/** The report first, then its recipients and the returned message; text of strangers is not cleaned. */
export function linesOf(report: Report): string[] {
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
			const who = report.recipients.length === 0 ? 'no address named' : report.recipients.join(', ');
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
