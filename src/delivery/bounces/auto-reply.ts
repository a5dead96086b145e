/** Answers that a machine gives for a person (RFC 3834): the mail arrived, nothing bounced. */
import { decodeWords } from './decode.js';
import { type Field, findField } from './fields.js';

interface Sign {
	field: string;
	value: RegExp;
	/** Believed even from a mail system: nothing but an absence is said so. */
	isPlain?: true;
}

/** What says so; the first that fits is named. */
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
 * Why this header is that of an automatic answer; null when it is not. A request to unsubscribe that a mail program
 * sends by itself (RFC 2369) is not: somebody wants something.
 */
export function autoReplySign(fields: readonly Field[]): { why: string; line: number } | null {
	const subject = findField(fields, 'subject')?.value ?? '';
	return /^unsubscribe\b/i.test(subject) ? null : signOf(fields, signs);
}

/** As `autoReplySign`, by signs that no bounce has: an Exim bounce is `Auto-Submitted: auto-replied` as well. */
export function plainAutoReplySign(fields: readonly Field[]): { why: string; line: number } | null {
	return signOf(
		fields,
		signs.filter(({ isPlain }) => isPlain === true),
	);
}

function signOf(fields: readonly Field[], among: readonly Sign[]): { why: string; line: number } | null {
	for (const { field, value } of among) {
		const found = findField(fields, field);
		const text = decodeWords(found?.value ?? '').slice(0, 998);
		if (found !== null && value.test(text))
			return { why: `${found.name}: ${text.slice(0, 80)}`, line: found.line };
	}
	return null;
}
