import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/api/errors.js';
import { settleError } from '../../../src/delivery/api/courier.js';
import type { Leased } from '../../../src/store/queue.js';

const group = ['ann@example.com', 'bob@example.com'].map(
	(to): Leased => ({
		message: to,
		fence: 1,
		submission: 's',
		to,
		list_id: null,
		variables: {},
		attempts: 0,
		created_at: 0,
	}),
);
const [ann, bob] = group;

function answered(status: number): ApiError {
	const http = { status, method: 'POST', path: '/message/send/' };
	return new ApiError('invalid', 'The quota is used up.', { http });
}

describe('a refused call of a campaign', () => {
	it.each([
		'shared',
		'own',
	] as const)('ends the run if the service answers 402, payment required, to a call with %s content', (content) => {
		const error = answered(402);
		const outcome = { kind: 'released', why: 'infrastructure' };
		expect(settleError(group, content, error)).toEqual({
			outcomes: [
				{ message: ann, outcome },
				{ message: bob, outcome },
			],
			again: [],
			stop: error,
		});
	});

	it('is split into two calls if the error names no recipient', () => {
		expect(settleError(group, 'shared', answered(422))).toEqual({
			outcomes: [],
			again: [[ann], [bob]],
			stop: null,
		});
	});
});
