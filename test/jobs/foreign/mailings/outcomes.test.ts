import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../../src/api/errors.js';
import type { Group } from '../../../../src/jobs/foreign/mailings/calls.js';
import { settleError } from '../../../../src/jobs/foreign/mailings/outcomes.js';

function groupOf(content: Group['content']): Group {
	const people = ['ann@example.com', 'bob@example.com'].map((to, seat) => ({ to, seat }));
	return { people, content, request: { from: 'news@example.com', subject: 's', text_body: 't' } };
}

function answered(status: number): ApiError {
	const http = { status, method: 'POST', path: '/message/send/' };
	return new ApiError('invalid', 'The quota is used up.', { http });
}

describe('a refused call of a job', () => {
	it.each(['shared', 'own'] as const)('ends the run where payment is required: %s content', (content) => {
		const error = answered(402);
		expect(settleError(groupOf(content), error)).toEqual({
			outcomes: [{ kind: 'outcome', as: 'waiting', seats: [0, 1] }],
			again: [],
			stop: error,
		});
	});

	it('is asked about in halves where it does not say whom it is about', () => {
		expect(settleError(groupOf('shared'), answered(422))).toMatchObject({
			stop: null,
			again: [{ people: [{ seat: 0 }] }, { people: [{ seat: 1 }] }],
		});
	});
});
