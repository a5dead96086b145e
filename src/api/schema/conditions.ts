/** Conditions on subscribers: `meta.city=Oslo`, `email~@example.com`, `created>2026-01-31`. */
import { parseDateTime } from '../datetime.js';

const operators = ['!=', '>=', '<=', '=', '~', '>', '<'] as const;
export type Operator = (typeof operators)[number];

export const plainFields = ['email', 'name', 'created'] as const;

export interface Condition {
	text: string;
	field: string;
	variable: string | null;
	operator: Operator;
	value: string;
}

interface ConditionFault {
	at: number;
	message: string;
	field?: string;
}

export function parseCondition(text: string): Condition | ConditionFault {
	const end = text.search(/[=~<>!]/);
	if (end === -1) return { at: text.length, message: 'an operator is missing: =, !=, ~, <, <=, > or >=' };
	const operator = operators.find((one) => text.startsWith(one, end));
	if (operator === undefined) return { at: end, message: 'no operator: =, !=, ~, <, <=, > or >=' };
	const field = text.slice(0, end).trim();
	const value = text.slice(end + operator.length).trim();
	const isOrder = operator.includes('<') || operator.includes('>');
	const behind = end + operator.length;
	if (field.startsWith('meta.')) {
		const variable = field.slice('meta.'.length);
		if (!/^[A-Za-z_]\w{0,63}$/.test(variable))
			return { at: 0, message: 'the name of the variable is missing or invalid', field };
		if (isOrder && numberOf(value) === null) return { at: behind, message: 'a number is expected here' };
		return { text, field, variable, operator, value };
	}
	if (!plainFields.some((one) => one === field))
		return { at: 0, message: field === '' ? 'a field is missing' : `there is no field "${field}"`, field };
	if (field === 'created') {
		if (operator === '~') return { at: end, message: 'compare a date with =, !=, <, <=, > or >=' };
		if (!isDay(value) && parseDateTime(value) === null)
			return { at: behind, message: 'a date is expected here: 2026-01-31 or 2026-01-31T12:00:00' };
	} else if (isOrder) return { at: end, message: 'compare a text with =, != or ~' };
	return { text, field, variable: null, operator, value };
}

export function isCondition(parsed: Condition | ConditionFault): parsed is Condition {
	return 'operator' in parsed;
}

export function numberOf(text: string): number | null {
	const isNumber = /^[+-]?\d{1,15}(?:\.\d{1,15})?$/.test(text.trim());
	return isNumber ? Number(text) : null;
}

export function isDay(value: string): boolean {
	return /^\d{4}-\d\d-\d\d$/.test(value) && parseDateTime(`${value}T00:00:00`) !== null;
}
