/** A service without extensions: the engine on a new file. A test can make any call fail. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Api } from '../../src/api/api.js';
import type { SubscriberInput } from '../../src/api/inputs.js';
import type { Subscriber } from '../../src/api/records.js';
import { connect } from '../../src/cli/connect.js';
import { dependencies } from './connect.js';

export interface Deployment {
	api: Api;
	listId: number;
	readonly calls: string[];
	readonly busiest: number;
	people(): Promise<Record<string, Pick<Subscriber, 'name' | 'is_active' | 'meta'>>>;
	add(input: SubscriberInput): Promise<Subscriber>;
	close(): Promise<void>;
}

export interface DeploymentOptions {
	before?: (call: string) => void | Promise<void>;
	after?: (call: string) => void | Promise<void>;
	pageSize?: number;
}

export async function startDeployment(options: DeploymentOptions = {}): Promise<Deployment> {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-foreign-'));
	const url = join(folder, 'news.db');
	const connection = await connect({ kind: 'local', url, create: true }, dependencies());
	const { api } = connection;
	const { id: listId } = await api.lists.create({ name: 'Readers', email_reason: 'r' });
	for (const variable of ['city', 'plan']) await api.fields.create({ variable, name: variable });
	const calls: string[] = [];
	let busy = 0;
	let busiest = 0;
	const wire = async <T>(call: string, work: () => Promise<T>): Promise<T> => {
		calls.push(call);
		busy += 1;
		busiest = Math.max(busiest, busy);
		try {
			await options.before?.(call);
			const answer = await work();
			await options.after?.(call);
			return answer;
		} finally {
			busy -= 1;
		}
	};
	const { pageSize } = options;
	const wired = (subscribers: ReturnType<Api['subscribers']>): ReturnType<Api['subscribers']> => ({
		...subscribers,
		create: (input) => wire(`create ${input.email}`, () => subscribers.create(input)),
		patch: (id, input) => wire(`patch ${id}`, () => subscribers.patch(id, input)),
		get: (id) => wire(`get ${id}`, () => subscribers.get(id)),
		page: ({ page, page_size, query: _, ...filter }) => {
			const size = pageSize ?? page_size;
			const request = { ...filter, ...(page && { page }), ...(size && { page_size: size }) };
			const named = Object.entries(filter).map(([name, value]) => `${name}=${value}`);
			return wire(`page ${named.join('&') || (page ?? 1)}`, () => subscribers.page(request));
		},
	});
	return {
		api: {
			...api,
			subscribers: (id) => wired(api.subscribers(id)),
			capabilities: async () => ({ service: 'unknown', idempotentSend: false, ext: {} }),
		},
		listId,
		calls,
		get busiest() {
			return busiest;
		},
		people: async () => {
			const { results } = await api.subscribers(listId).page({ page_size: 1000 });
			return Object.fromEntries(
				results.map(({ email, name, is_active, meta }) => [email, { name, is_active, meta }]),
			);
		},
		add: (input) => api.subscribers(listId).create(input),
		close: () => connection.close(),
	};
}
