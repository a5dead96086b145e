import type { FieldError } from '../errors.js';
import { type Checked, char, dict, type Field, valid } from './fields.js';

const maxHeaders = 64;

/** Assumption: a longer name would leave too little space for the value on the first line. */
export const maxHeaderName = 200;

/** RFC 5322 s.2.1.1: a line has at most 998 characters, including name, colon and space. */
const maxHeaderLine = 998;

// RFC 5322 s.3.6.8: printable ASCII except the colon.
const headerName = /^[!-9;-~]+$/;
const forbiddenText = /[\0-\x08\n-\x1f\x7f]/;

const reserved: readonly RegExp[] = [
	// mailctl writes these headers. A duplicate would add recipients or change how programs read the body.
	/^(from|author|to|cc|bcc|sender|reply-to|subject|date|message-id|(mime|content|resent)(-.*)?|list-unsubscribe.*)$/i,
	// Mail servers record the route, the recipient and the processing here (RFC 5321, 7208, 8098, 9228; Postfix, Exim).
	/^(x-)?(return-path|received(-spf)?|delivered-to|delivery-date|(original|apparently|forwarded)-to)$/i,
	/^(x-)?(apparently-from|envelope-(from|sender|to|recipients?))$/i,
	/^(original-(recipient|from|subject|message-id|encoded-information-types)|downgraded(-.*)?|sio-label-history)$/i,
	/^(dl-expansion-history|autoforwarded|(discarded-)?x400-.*|x-(trasporto|ricevuta|verificasicurezza))$/i,
	// Headers that tell mail servers how to report, route, convert or delay the mail (RFC 2156, 6758).
	/^(errors-to|return-receipt-to|notice-requested-upon-delivery-to|originator-return-address|mt-priority)$/i,
	/^(alternate-recipient|conversion(-with-loss)?|deferred-delivery|latest-delivery-time|disclose-recipients)$/i,
	/^(generate-delivery-report|prevent-nondelivery-report)$/i,
	// Headers in which programs record that they checked or signed the mail (RFC 8601, 6376, 8617).
	/^((x-)?(original-)?authentication-results|(dkim|arc)(-.*)?|domainkey-.*|bimi-(location|indicator))$/i,
];

export function headers(): Field<Record<string, string>, 'required'> {
	return dict(char({ trim: 'off' }), { check: checkHeader, max: maxHeaders });
}

export function isReservedHeader(name: string): boolean {
	return reserved.some((names) => names.test(name));
}

function checkHeader(name: string, value: string): Checked<string> {
	const errors: FieldError[] = [];
	const complain = (message: string) => errors.push({ code: 'invalid', message });
	if (!headerName.test(name)) complain('This is not a valid header name.');
	else if (name.length > maxHeaderName)
		errors.push({
			code: 'max_length',
			message: `The name of a header may have at most ${maxHeaderName} characters.`,
		});
	else if (isReservedHeader(name)) complain('This header may not be set.');
	if (forbiddenText.test(value)) complain('A header may not contain line breaks or control characters.');
	if (name.length <= maxHeaderName && name.length + 2 + value.length > maxHeaderLine) {
		errors.push({ code: 'max_length', message: `A header may have at most ${maxHeaderLine} characters.` });
	}
	return errors.length === 0 ? valid(value) : { kind: 'invalid', errors };
}
