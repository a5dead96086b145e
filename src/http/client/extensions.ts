/** What is ours beyond the document, over its routes; only what a deployment announces is ever called. */
import type { Extensions } from '../../api/capabilities.js';
import type { SubscriberSlice } from '../../api/exports.js';
import { type Check, decode, every, ignoreBody, listOf, pageOf, record, within } from './decode.js';
import { deliveries } from './deliveries.js';
import { encodeQuery } from './encode.js';
import type { Ask, Line } from './line.js';
import { report } from './reports.js';
import { mendMeta, pageQuery, subscriberCheck } from './resources.js';
import { send } from './send.js';
import { suppressions } from './suppressions.js';

const template = record({ id: 'text', name: 'text' });
const sender = record({ id: 'id', email: 'text' });
const message = record({ id: 'text', to: 'text', state: 'text' });
const messageDetail = every(message, record({ delivery_attempts: 'array' }));
const mailing = record({ id: 'text', key: 'text', state: 'text', position: 'count' });
const session = record({ id: 'text', position: 'count' });
const ack = record({ position: 'count', counts: 'object', rejects: 'array' });

/** Every extension of this version, whether the deployment has it or not. */
export function extensions(line: Line): Extensions {
	const ask = async <T>(what: Ask, check: Check): Promise<T> => decode<T>(await send(line, what), check);
	const done = async (what: Ask) => ignoreBody(await send(line, what));
	return {
		imports: imports(ask),
		mailings: mailings(ask, done),
		messages: {
			page: (request, call) =>
				ask({ operation: 'ext.messages.page', query: pageQuery(request), call }, pageOf(message)),
			get: (uuid, call) => ask({ operation: 'ext.messages.get', values: { uuid }, call }, messageDetail),
			cancel: (uuid, call) =>
				ask({ operation: 'ext.messages.cancel', values: { uuid }, call }, messageDetail),
			retry: (uuid, call) => ask({ operation: 'ext.messages.retry', values: { uuid }, call }, messageDetail),
			raw: (uuid, call) =>
				ask(
					{ operation: 'ext.messages.raw', values: { uuid }, call },
					record({ id: 'text', raw_base64: 'text' }),
				),
			progress: (scope, call) =>
				ask(
					{ operation: 'ext.messages.progress', query: encodeQuery({ ...scope }), call },
					record({ messages: 'object' }),
				),
		},
		templates: {
			page: (request, call) =>
				ask({ operation: 'ext.templates.page', query: pageQuery(request), call }, pageOf(template)),
			get: (uuid, call) => ask({ operation: 'ext.templates.get', values: { uuid }, call }, template),
			create: (body, call) => ask({ operation: 'ext.templates.create', body, call }, template),
			patch: (uuid, body, call) =>
				ask({ operation: 'ext.templates.patch', values: { uuid }, body, call }, template),
			delete: (uuid, call) => done({ operation: 'ext.templates.delete', values: { uuid }, call }),
		},
		senders: {
			page: (request, call) =>
				ask({ operation: 'ext.senders.page', query: pageQuery(request), call }, pageOf(sender)),
			create: (body, call) => ask({ operation: 'ext.senders.create', body, call }, sender),
			delete: (id, call) => done({ operation: 'ext.senders.delete', values: { id }, call }),
		},
		reports: { report: (query, call) => report(line, 'ext.reports.report', { query, call }) },
		subscribers: {
			// Our own server reads meta as it is; the string form is for deployments of others.
			merge: (list_id, id, body, call) =>
				ask(
					{ operation: 'ext.subscribers.merge', values: { list_id, id }, body, call },
					record({ id: 'id', email: 'text', meta: 'object' }),
				),
			clear: async (list_id, call) => {
				const what: Ask = { operation: 'ext.subscribers.clear', values: { list_id }, call };
				return (await ask<{ deleted: number }>(what, record({ deleted: 'count' }))).deleted;
			},
		},
		fields: {
			countUses: async (id, call) => {
				const what: Ask = { operation: 'ext.fields.countUses', values: { id }, call };
				return (await ask<{ count: number }>(what, record({ count: 'count' }))).count;
			},
		},
		erasures: {
			erase: (email, call) =>
				ask(
					{ operation: 'ext.erasures.erase', body: { email }, call },
					record({ subscribers: 'count', messages: 'count' }),
				),
			lift: (email, call) => done({ operation: 'ext.erasures.lift', body: { email }, call }),
		},
		exports: exportsOf(ask),
		deliveries: deliveries(ask),
		suppressions: suppressions(ask),
	};
}

function exportsOf(ask: AskFor): Extensions['exports'] {
	const check = every(within('results', listOf(subscriberCheck)), record({ results: 'array' }));
	return {
		slice: async (list_id, request, call) => {
			const query = encodeQuery({ ...request });
			const what: Ask = { operation: 'ext.exports.slice', values: { list_id }, query, call };
			const slice = await ask<SubscriberSlice>(what, check);
			return { ...slice, results: slice.results.map(mendMeta) };
		},
	};
}

export type AskFor = <T>(what: Ask, check: Check) => Promise<T>;

function imports(ask: AskFor): Extensions['imports'] {
	return {
		open: (key, spec, call) => ask({ operation: 'ext.imports.open', body: { ...spec, key }, call }, session),
		put: (uuid, { first, ...body }, call) =>
			ask({ operation: 'ext.imports.put', values: { uuid, first }, body, call }, ack),
		finish: (uuid, call) =>
			ask({ operation: 'ext.imports.finish', values: { uuid }, call }, record({ created: 'count' })),
	};
}

function mailings(ask: AskFor, done: (what: Ask) => Promise<void>): Extensions['mailings'] {
	return {
		open: (key, spec, call) => ask({ operation: 'ext.mailings.open', body: { ...spec, key }, call }, session),
		put: (uuid, { first, ...body }, call) =>
			ask({ operation: 'ext.mailings.put', values: { uuid, first }, body, call }, ack),
		putRequests: (uuid, { first, ...body }, call) =>
			ask({ operation: 'ext.mailings.putRequests', values: { uuid, first }, body, call }, ack),
		complete: (uuid, body, call) =>
			done({ operation: 'ext.mailings.complete', values: { uuid }, body, call }),
		page: (request, call) =>
			ask({ operation: 'ext.mailings.page', query: pageQuery(request), call }, pageOf(mailing)),
		results: (uuid, request, call) =>
			ask(
				{ operation: 'ext.mailings.results', values: { uuid }, query: encodeQuery({ ...request }), call },
				record({ results: 'array' }),
			),
		addList: (uuid, list_id, call) =>
			ask({ operation: 'ext.mailings.addList', values: { uuid, list_id }, call }, ack),
		release: (uuid, body, call) => done({ operation: 'ext.mailings.release', values: { uuid }, body, call }),
		cancel: (uuid, call) => done({ operation: 'ext.mailings.cancel', values: { uuid }, call }),
		status: (uuid, call) =>
			ask(
				{ operation: 'ext.mailings.status', values: { uuid }, call },
				every(
					record({ id: 'text', state: 'text', messages: 'object' }),
					within('counts', record({ staged: 'count' })),
				),
			),
	};
}
