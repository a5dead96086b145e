/** The input of a verified sender: a plain address, without a name. */
import { email } from './schema/char.js';
import { fieldSet } from './schema.js';

/** The input of `senders.create`. */
export const senderFields = fieldSet({ email: email() });
