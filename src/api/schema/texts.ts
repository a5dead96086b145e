/** Texts of Django REST framework 3.14, word for word. */

export const texts = {
	required: 'This field is required.',
	null: 'This field may not be null.',
	blank: 'This field may not be blank.',
	string: 'Not a valid string.',
	nullCharacters: 'Null characters are not allowed.',
	boolean: 'Must be a valid boolean.',
	integer: 'A valid integer is required.',
	digits: 'Ensure that there are no more than 15 digits in total.',
	email: 'Enter a valid email address.',
	url: 'Enter a valid URL.',
	value: 'Enter a valid value.',
	uuid: 'Must be a valid UUID.',
	json: 'Value must be valid JSON.',
	datetime: 'Datetime has wrong format. Use YYYY-MM-DDTHH:MM:SS.ffffff.',
	unique: 'This field must be unique.',
	metaValue: 'Use a string, a number, true, false or null.',
} as const;

export function notAChoice(value: string): string {
	return `"${value}" is not a valid choice.`;
}
