/** The input of a subscriber list. */
import { char } from './schema/char.js';
import { fieldSet } from './schema.js';

/** Service document, "Lists". Assumption: both texts have at most 255 characters and are required by PUT too. */
export const listFields = fieldSet({
	name: char({ max: 255 }),
	email_reason: char({ max: 255 }),
});
