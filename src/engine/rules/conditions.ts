import { type Day, dayOf, type Micros, parseDateTime } from '../../api/datetime.js';
import { type Condition, isDay, numberOf, type Operator } from '../../api/schema/conditions.js';
import { foldCase, metaText } from './subscribers.js';

interface ConditionedPerson {
	email: string;
	name: string | null;
	meta: Readonly<Record<string, unknown>>;
	created_at: Micros;
}

/** Treats a missing value as empty. */
export function meets(person: ConditionedPerson, condition: Condition, timeZone: string): boolean {
	const { field, variable, operator, value } = condition;
	if (field === 'created') return compared(orderOfDates(person.created_at, value, timeZone), operator);
	const stored = textOf(person, field, variable);
	if (operator === '~') return foldCase(stored).includes(foldCase(value));
	if (field === 'email') return compared(orderOf(foldCase(stored), foldCase(value)), operator);
	const [left, right] = [numberOf(stored), numberOf(value)];
	if (left !== null && right !== null) return compared(orderOf(left, right), operator);
	return compared(operator === '=' || operator === '!=' ? orderOf(stored, value) : null, operator);
}

function compared(order: number | null, operator: Operator): boolean {
	return order !== null && (fits[operator]?.(order) ?? false);
}

const fits: Readonly<Partial<Record<Operator, (order: number) => boolean>>> = {
	'=': (order) => order === 0,
	'!=': (order) => order !== 0,
	'>': (order) => order > 0,
	'>=': (order) => order >= 0,
	'<': (order) => order < 0,
	'<=': (order) => order <= 0,
};

function orderOf<T extends string | number>(left: T, right: T): number {
	return left < right ? -1 : left > right ? 1 : 0;
}

function textOf({ email, name, meta }: ConditionedPerson, field: string, variable: string | null): string {
	if (variable === null) return field === 'email' ? email : (name ?? '');
	return (Object.hasOwn(meta, variable) ? metaText(meta[variable]) : null) ?? '';
}

function orderOfDates(at: Micros, value: string, timeZone: string): number {
	if (!isDay(value)) return orderOf(at, parseDateTime(value) ?? 0);
	const day: Day = value;
	return orderOf(dayOf(at, timeZone), day);
}
