/** Secrets of the database: wrapped, by a key that is given, or not. */

import type { SecretCount } from '../../frame/connection.js';
import { counted } from '../../render/plurals.js';
import type { ContentsCheck } from '../contents-checks.js';
import { type Check, type CheckEnvironment, ok, problem, type Verdict, warning } from '../model.js';

/** The keys of the environment as they were read: by their ids, the first wraps. */
export interface GivenKeys {
	given: readonly { id: string }[];
	/** The reason why named keys are unusable. */
	problem: string | null;
}

/** `settings.secrets`. */
export function secretsCheck(
	ofContents: ContentsCheck,
	keys: GivenKeys,
	{ line }: Pick<CheckEnvironment, 'line'>,
): Check {
	return {
		name: 'settings.secrets',
		run: ofContents(async ({ secrets }) => judge(await secrets(), keys, line)),
	};
}

function judge(counts: readonly SecretCount[], keys: GivenKeys, line: CheckEnvironment['line']): Verdict {
	if (keys.problem !== null)
		return problem(keys.problem, 'one key a line, 32 bytes in hex: openssl rand -hex 32');
	const unknown = counts.find(({ key }) => key !== null && keys.given.every(({ id }) => id !== key));
	if (unknown !== undefined)
		return problem(
			`${counted(unknown.secrets, 'secret')} of the database are wrapped with key ${unknown.key}, which is not given`,
			'name the file with that key in MAILCTL_KEY_FILE',
		);
	const plain = counts.find(({ key }) => key === null)?.secrets ?? 0;
	const [current] = keys.given;
	if (current === undefined)
		return ok(
			plain === 0
				? 'there are none'
				: `${counted(plain, 'secret')}, not wrapped: MAILCTL_KEY_FILE names no key`,
		);
	const older = counts.filter(({ key }) => key !== current.id);
	if (older.length === 0) return ok(`wrapped with key ${current.id}`);
	const many = older.reduce((sum, { secrets }) => sum + secrets, 0);
	return warning(
		`${counted(many, 'secret')} not wrapped with key ${current.id}`,
		line('engine', 'secrets', 'wrap'),
	);
}
