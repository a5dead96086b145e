/** What `run_test` answered: the service document shows no body, so any success is one (api-decisions 33). */
import type { TestResult } from '../../api/records.js';
import { readJson } from './json-body.js';
import type { Success } from './line.js';

/** What is not told is null; what else is told is kept. */
export function decodeTest({ answer }: Success): TestResult {
	const body = readJson(answer.body);
	const told: Record<string, unknown> =
		body.kind === 'valid' &&
		typeof body.value === 'object' &&
		body.value !== null &&
		!Array.isArray(body.value)
			? { ...body.value }
			: {};
	const { result, status_code, error, duration_ms } = told;
	return {
		...told,
		result: typeof result === 'boolean' ? result : null,
		status_code: typeof status_code === 'number' ? status_code : null,
		error: typeof error === 'string' ? error : null,
		duration_ms: typeof duration_ms === 'number' ? duration_ms : null,
	};
}
