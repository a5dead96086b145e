import { parseDateTime } from '../../api/datetime.js';
import type { Field, Subscriber } from '../../api/records.js';
import { type Condition, isCondition, parseCondition, plainFields } from '../../api/schema/conditions.js';
import { meets } from '../../engine/rules/conditions.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { parseDate } from '../frame/values.js';
import { didYouMean } from '../frame/words.js';
import { metaName, readFields, variableOf } from './field-names.js';

/** Returns a filter for services that cannot filter by conditions. Null: no conditions. */
export async function matcherOf(
	cx: CommandContext,
	texts: readonly string[],
): Promise<((subscriber: Subscriber) => boolean) | null> {
	if (texts.length === 0) return null;
	const conditions = await readConditions(cx, texts);
	const zone = await zoneOf(cx);
	return ({ date_created, ...person }) => {
		const created_at = parseDateTime(date_created) ?? 0;
		return conditions.every((one) => meets({ ...person, created_at }, one, zone));
	};
}

async function zoneOf(cx: CommandContext): Promise<string> {
	const { ext } = await (await cx.api()).capabilities();
	return ext.audiences === undefined ? cx.timeZone() : (await ext.audiences.plan({})).time_zone;
}

export async function readConditions(cx: CommandContext, texts: readonly string[]): Promise<Condition[]> {
	const fields = await knownFields(cx, texts);
	const names = [...plainFields, ...fields.map(({ variable }) => metaName(variable))];
	return texts.map((text) => {
		const settled = withVariable(withDate(cx, text), fields);
		const parsed = parseCondition(settled);
		if (!isCondition(parsed)) throw badCondition(settled, parsed, names);
		const { variable, field } = parsed;
		if (variable !== null && !fields.some((one) => one.variable === variable))
			throw badCondition(settled, { at: 0, message: `unknown field "${variable}"`, field }, names);
		return parsed;
	});
}

function withVariable(text: string, fields: readonly Field[]): string {
	const [head = '', typed = ''] = /^\s*meta\.([^=~<>!]+)/.exec(text) ?? [];
	const variable = variableOf(fields, typed.trim());
	return variable === null || variable === typed.trim() ? text : metaName(variable) + text.slice(head.length);
}

async function knownFields(cx: CommandContext, where: readonly string[]): Promise<Field[]> {
	const isAboutFields = where.some((text) => {
		const parsed = parseCondition(withDate(cx, text));
		return isCondition(parsed) ? parsed.variable !== null : Boolean(parsed.field);
	});
	return isAboutFields ? readFields(cx) : [];
}

function withDate(cx: CommandContext, text: string): string {
	const [, head, value] = /^(created *(?:[<>]=?|!?=)) *(\S+)$/.exec(text.trim()) ?? [];
	if (head === undefined || value === undefined) return text;
	try {
		return `${head}${parseDate(value, '--where', { clock: cx.clock, zone: cx.timeZone })}`;
	} catch (error) {
		if (error instanceof UsageError) return text;
		throw error;
	}
}

function badCondition(
	text: string,
	{ at, message, field }: { at: number; message: string; field?: string },
	names: readonly string[],
): UsageError {
	const meta = names.find((name) => name.toLowerCase() === metaName(field ?? '').toLowerCase());
	const near = meta === undefined ? didYouMean(field ?? '', names) : `did you mean ${meta}?`;
	return new UsageError(`--where: ${message}`, {
		details: [text, `${' '.repeat(at)}^`],
		hint:
			near ??
			`such as 'meta.city=Oslo' or 'created>7d'; fields: ${names.slice(0, 12).join(', ')}${names.length > 12 ? ', …' : ''}`,
	});
}
