/** A service that keeps its lists in an array, for tests of the frame that need no engine. */

import type { Api } from '../../src/api/api.js';
import { ApiError, notFound } from '../../src/api/errors.js';
import type { List } from '../../src/api/records.js';
import type { Connect } from '../../src/cli/frame/connection.js';

export function someList(id: number, more: Partial<List> & Record<string, unknown> = {}): List {
	return {
		id,
		name: `List ${id}`,
		email_reason: 'You asked',
		active_subscribers_count: 2,
		inactive_subscribers_count: 1,
		overall_subscribers_count: 3,
		date_created: '2026-11-01T10:00:00.000000',
		...more,
	};
}

export function connectTo(lists: List[]): Connect {
	const find = (id: number) => {
		const at = lists.findIndex((one) => one.id === id);
		if (at === -1) throw notFound();
		return at;
	};
	const crud: Api['lists'] = {
		page: async ({ page = 1, page_size = 100 }) => ({
			count: lists.length,
			next: page * page_size < lists.length ? `http://service/lists/?page=${page + 1}` : null,
			previous: null,
			results: lists.slice((page - 1) * page_size, page * page_size),
		}),
		get: async (id) => lists[find(id)] ?? someList(id),
		create: async (input) => {
			if (!input.name.trim())
				throw new ApiError('invalid', 'name', {
					fields: { name: [{ code: 'blank', message: 'This field may not be blank.' }] },
				});
			const list = someList(lists.length + 1, { ...input });
			lists.push(list);
			return list;
		},
		replace: async (id, input) => Object.assign(lists[find(id)] ?? {}, input) as List,
		patch: async (id, input) => Object.assign(lists[find(id)] ?? {}, input) as List,
		delete: async (id) => void lists.splice(find(id), 1),
	};
	return async (target) => ({
		api: {
			...{ lists: crud, fields: {}, senders: {}, close: async () => {} },
			capabilities: async () => ({ service: 'unknown', idempotentSend: false, ext: {} }),
		} as unknown as Api,
		target,
		exchange: () => Promise.reject(new Error('this deployment has no wire')),
		compose: () => Promise.reject(new Error('nothing is composed here')),
		render: () => Promise.reject(new Error('nothing is composed here')),
		local: null,
		close: async () => {},
	});
}
