/** The machine itself. */
import { type Check, ok, problem, type Verdict } from '../model.js';

/** As `engines` of the package and the program's first lines have it. */
const needed = { major: 20, minor: 19 };

/** `machine.node`. */
export function machineChecks(): Check[] {
	return [{ name: 'machine.node', run: async () => judgeNode(process.versions.node) }];
}

/** `20.19.1` → whether it runs this program. */
export function judgeNode(version: string): Verdict {
	const [major = 0, minor = 0] = version.split('.').map(Number);
	const isEnough = major > needed.major || (major === needed.major && minor >= needed.minor);
	if (isEnough) return ok(`Node.js ${version}`);
	return problem(
		`Node.js ${version} is too old: ${needed.major}.${needed.minor} or newer is needed`,
		'install a newer Node.js: https://nodejs.org/',
	);
}
