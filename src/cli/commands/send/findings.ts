/** Who cannot be sent to, in the words of a job and of its dry run alike. */
import { UsageError } from '../../errors.js';
import { countOf } from './counts.js';

/** So many are read on a screen; machines get them all, and so does `--results`. */
export const shownFindings = 10;

/** What is found against some recipients. */
export interface Findings {
	/** Recipients that cannot be sent to. */
	rejected: number;
	/** The first of them, a line each. */
	lines: readonly string[];
	/** A variable without a value is among all of them. */
	lacksValues: boolean;
}

/** The code of that finding, here and at every service that takes mailings. */
export const missingVariable = 'missing_variable';

/** The lines, and how many more there are. */
export function listed({ rejected, lines }: Omit<Findings, 'lacksValues'>): string[] {
	const left = rejected - lines.length;
	return left > 0 ? [...lines, `and ${left.toLocaleString('en-US')} more`] : [...lines];
}

/** The refusal of a job with findings. `mend`: what to do about them, before the ways round them. */
export function cannotBeSent(findings: Findings, mend: string): UsageError {
	const { rejected, lacksValues } = findings;
	const loose = lacksValues ? ', or --no-strict-vars for missing variables' : '';
	const people = countOf(rejected, 'recipient');
	return new UsageError(
		`${people} cannot be sent to as ${rejected === 1 ? 'it is' : 'they are'}; nothing was released`,
		{
			details: listed(findings),
			hint: `${mend}, or give --skip-invalid${loose}`,
		},
	);
}
