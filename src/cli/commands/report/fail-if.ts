/** `--fail-if`: a test of one figure of the totals. */
import { type EventType, eventOfTotal, isCounted, type Report } from '../../../api/records.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { didYouMean } from '../../frame/help.js';

type TotalName = keyof Report['total'];
/** What a script ends with exit 10 for. */
export interface Test {
	name: TotalName;
	operator: string;
	value: number;
}

const totalNames: readonly TotalName[] = [
	'sent',
	'opened',
	'opened_percent',
	'redirected_percent',
	'softbounced_percent',
	'unsubscribed_percent',
	'hardbounced_percent',
];

/** With the name that tables have for one of them. */
const testable = [...totalNames, 'clicked_percent'];

/** Throws `UsageError`, also where the report leaves the events of the figure out. */
export function parseTest(text: string, events: readonly EventType[]): Test {
	const [, word, operator, value] = /^\s*(\w+)\s*(>=|<=|==|!=|>|<)\s*(-?\d+(?:\.\d+)?)\s*$/.exec(text) ?? [];
	const wanted = word === 'clicked_percent' ? 'redirected_percent' : word;
	const name = totalNames.find((one) => one === wanted);
	if (name === undefined || operator === undefined || value === undefined) {
		const near = word === undefined || name !== undefined ? undefined : didYouMean(word, testable);
		throw new UsageError(`--fail-if "${text}" is no test`, {
			hint:
				near ??
				`name, operator (> >= < <= == !=), number: 'hardbounced_percent>2'; names are ${totalNames.join(', ')}; clicked_percent is redirected_percent`,
		});
	}
	if (!isCounted(name, events))
		throw new UsageError(`--fail-if tests ${name}, which --event ${events.join(',')} leaves out`, {
			hint: `add --event ${eventOfTotal[name]}, or leave --event out`,
		});
	return { name, operator, value: Number(value) };
}

/** Throws `CliError` where the service told no number. */
export function isTrue({ name, operator, value }: Test, { total }: Report): boolean {
	const actual = Number(total[name]);
	if (Number.isNaN(actual))
		throw new CliError('bad_answer', exits.server, `the service answered no number for ${name}`);
	switch (operator) {
		case '>':
			return actual > value;
		case '>=':
			return actual >= value;
		case '<':
			return actual < value;
		case '<=':
			return actual <= value;
		case '==':
			return actual === value;
		default:
			return actual !== value;
	}
}
