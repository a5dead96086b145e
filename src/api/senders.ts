/** The input of a sender: plain addresses, and the name beside them. */
import { char, email, type TextRule } from './schema/char.js';
import { withDefault } from './schema/field.js';
import { texts } from './schema/texts.js';
import { fieldSet } from './schema.js';

/** The name becomes part of a header. */
const oneLine: TextRule = (value) =>
	/[\x01-\x1f\x7f-\x9f\u2028\u2029]/.test(value) ? { code: 'invalid', message: texts.value } : null;

/** The input of `senders`. Assumption: name and Reply-To may be blank, and are when they are not given. */
export const senderFields = fieldSet({
	full_name: withDefault(char({ max: 255, allowBlank: true, rules: [oneLine] }), () => ''),
	from_email: email(),
	reply_to_email: withDefault(email({ allowBlank: true }), () => ''),
});
