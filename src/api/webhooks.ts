/** The input of a webhook. Other code decides whether its target may be called. */
import { webhookTypes } from './records.js';
import { char, url } from './schema/char.js';
import { withDefault } from './schema/field.js';
import { boolean, choice } from './schema/scalars.js';
import { fieldSet } from './schema.js';

/** Service document, "HTTP notifications". Assumption: login and password have at most 255 characters. */
export const webhookFields = fieldSet({
	url: url(),
	type: choice(webhookTypes),
	is_auth_enabled: withDefault(boolean(), () => false),
	login: withDefault(char({ max: 255, allowBlank: true }), () => ''),
	password: withDefault(char({ max: 255, allowBlank: true, trim: 'off' }), () => ''),
});
