/** DRF's error bodies contain only texts (api-decisions 1), so clients map each text back to its code. */

export const refusalTexts = {
	not_verified: 'Sender address is not verified.',
	public_url_required: 'BULK needs the setting public_url: without it, unsubscribe links would lead nowhere.',
	private_target: 'This URL points to a private, loopback or reserved address.',
	erased: 'The data of this address was erased. Lift the erasure to add the address again.',
} as const;

export type RefusalCode = keyof typeof refusalTexts;

export function refusal(code: RefusalCode): { code: RefusalCode; message: string } {
	return { code, message: refusalTexts[code] };
}

export function suppressedText(reason: string): string {
	return `This address is suppressed (${reason}); it stays inactive until the suppression is removed.`;
}

export function unknownVariableText(variable: string): string {
	return `Unknown variable: ${variable}.`;
}

export function unknownVariableOf(text: string): string | null {
	return /^Unknown variable: (.*)\.$/s.exec(text)?.[1] ?? null;
}

export function noValueText(names: readonly string[], address?: string): string {
	const list = names.map((name) => `#${name}#`).join(', ');
	return address === undefined ? `No value for ${list}.` : `${address}: no value for ${list}.`;
}

export function withoutValueText(names: readonly string[]): string {
	return `without a value for ${names.map((name) => `#${name}#`).join(', ')}`;
}

export function withoutValueOf(text: string): string[] {
	const list = /(?:no|without a) value for (#.*#)\.?$/is.exec(text)?.[1] ?? '';
	return [...list.matchAll(/#([^#]*)#/g)].map(([, name = '']) => name);
}

const patterns: readonly (readonly [RegExp, string])[] = [
	[/^This field is required\.$/, 'required'],
	[/^This field may not be blank\.$/, 'blank'],
	[/^This field may not be null\.$/, 'null'],
	[/^This list may not be empty\.$/, 'empty'],
	[/must be unique\.$|already exists/, 'unique'],
	[/is not a valid choice\.$/, 'invalid_choice'],
	[/^Expected a list of items/, 'not_a_list'],
	[/^Expected a dictionary of items/, 'not_a_dict'],
	[/^Null characters are not allowed\.$/, 'null_characters_not_allowed'],
	[/^Ensure this field has no more than|^Ensure this value has at most/, 'max_length'],
	[/^Ensure this field has at least|^Ensure this value has at least/, 'min_length'],
	[/^Ensure this value is less than or equal/, 'max_value'],
	[/^Ensure this value is greater than or equal/, 'min_value'],
	[/does not exist\.$/, 'does_not_exist'],
	[/^Unknown variable: /, 'unknown_variable'],
	[/^This address is suppressed \(/, 'suppressed'],
	[/address is not verified\.?$/, 'not_verified'],
	[/\b(private|loopback|link-local|reserved) address\b/, 'private_target'],
];

const codes = new Map<string, string>(Object.entries(refusalTexts).map(([code, text]) => [text, code]));

export function codeOfText(text: string): string {
	return codes.get(text) ?? patterns.find(([pattern]) => pattern.test(text))?.[1] ?? 'invalid';
}
