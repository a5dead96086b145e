import { addressIn } from './addresses.js';
import { type Extract, joinLines } from './extract.js';
import { decodeWords, type Field, fieldsWithin, fieldValue, findField, placeOf } from './mime.js';
import { deliveryReport, judgeStatement, type Report } from './report.js';

interface Sign {
	field: string;
	value: RegExp;
	isPlain?: true;
}

const signs: readonly Sign[] = [
	{
		field: 'subject',
		value:
			/^\s*(?:auto(?:matic|mated)?[ -]?(?:reply|response|antwort)|autoreply|out of (?:the )?office|away from|vacation|on (?:vacation|leave|holiday)|abwesenheits?|automatische (?:antwort|abwesenheit)|r[ée]ponse automatique|absence du bureau|respuesta autom[áa]tica|fuera de la oficina|risposta automatica|fuori sede|resposta autom[áa]tica|automatisch antwoord|afwezig|autosvar|frånvaro|automaattinen vastaus|автоответ|自動(?:応答|返信)|自动回复|自動回覆)/i,
		isPlain: true,
	},
	{ field: 'x-autoreply', value: /^(?!no\b)\S/i, isPlain: true },
	{ field: 'x-autorespond', value: /\S/, isPlain: true },
	{ field: 'precedence', value: /^auto_reply\b/i, isPlain: true },
	{ field: 'auto-submitted', value: /^auto-replied\b/i },
];

/**
 * With `plain`, ignores signs that bounces also have: Exim marks its bounces `auto-replied`. With `all`, returns null
 * for an unsubscribe request, because a mail program may send one (RFC 2369).
 */
export function autoReplySign(
	fields: readonly Field[],
	among: 'plain' | 'all' = 'all',
): { why: string; line: number } | null {
	if (among === 'all' && /^unsubscribe\b/i.test(findField(fields, 'subject')?.value ?? '')) return null;
	for (const { field, value, isPlain } of signs) {
		const found = among === 'plain' && !isPlain ? null : findField(fields, field);
		const text = decodeWords(found?.value ?? '').slice(0, 998);
		if (found !== null && value.test(text))
			return { why: `${found.name}: ${text.slice(0, 80)}`, line: found.line };
	}
	return null;
}

const overQuota =
	/\b(?:over|exceed\w{0,3}|out of) (?:\w{1,12} ){0,2}quota|quota (?:is |was |has been )?(?:exceeded|full|reached)|mail ?(?:box|folder) (?:is )?(?:full|over)|not enough (?:disk )?(?:space|storage)/i;

/**
 * A disposition notification (RFC 8098) means that the mail arrived. But Dovecot sends one if a mailbox is over quota.
 */
export function readDisposition(found: Extract): Report | null {
	const part = found.mail.parts.find(({ type }) =>
		/^message\/(?:global-)?disposition-notification$/.test(type),
	);
	if (part === undefined) return null;
	const fields = fieldsWithin(part);
	const disposition = fieldValue(fields, 'disposition') ?? '';
	const isRefused = /^automatic-action\b.{0,100}\b(?:deleted|denied|failed)\b/i.test(disposition);
	const final = fieldValue(fields, 'final-recipient') ?? fieldValue(fields, 'original-recipient') ?? '';
	const address = addressIn(final.slice(final.indexOf(';') + 1));
	const detail = joinLines(found.notice?.lines ?? []).slice(0, 500);
	if (!isRefused || address === null || !overQuota.test(detail))
		return { kind: 'not_a_report', why: 'a disposition notification (RFC 8098): the mail arrived' };
	const statement = { address, original: null, detail, form: 'RFC 8098', place: placeOf(part) };
	const refused = judgeStatement(statement, 'failed');
	return deliveryReport([refused], found);
}
