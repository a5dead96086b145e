/** The machine itself. */
import { type Check, ok, problem, type Verdict } from '../model.js';

/** The least minor version of a major one, as `engines` of the package and the program's first lines have it. */
const leastMinors = new Map([
	[20, 19],
	[22, 14],
	[23, 6],
]);

/** `machine.node`. */
export function machineChecks(): Check[] {
	return [{ name: 'machine.node', run: async () => judgeNode(process.versions.node) }];
}

/** `20.19.1` → whether it runs this program. */
export function judgeNode(version: string): Verdict {
	const [major = 0, minor = 0] = version.split('.').map(Number);
	const isEnough = major > 23 || minor >= (leastMinors.get(major) ?? Number.POSITIVE_INFINITY);
	if (isEnough) return ok(`Node.js ${version}`);
	return problem(
		`Node.js ${version} is too old: 20.19 or 22.14, or newer is needed`,
		'install a newer Node.js: https://nodejs.org/',
	);
}
