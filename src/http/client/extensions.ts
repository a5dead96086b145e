/** The extensions over their routes; only those that a deployment announces are called. */
import { randomUUID } from 'node:crypto';
import type { Extensions } from '../../api/capabilities.js';
import type { Deliveries, SigningSecret, StoppedWebhook } from '../../api/deliveries.js';
import type { Suppressions } from '../../api/suppressions.js';
import { headerNames } from '../errors.js';
import { ackOf, audiences, campaigns, type Perform } from './campaigns.js';
import {
	assertNothing,
	type Check,
	decode,
	every,
	listOf,
	optional,
	pageOf,
	record,
	within,
} from './decode.js';
import { encodeQuery } from './encode.js';
import { exportsOf, tuplesOf } from './exports.js';
import { type Endpoint, type OperationRequest, requestOperation } from './request.js';
import { pageQuery, report } from './resources.js';

const addedList = record({ is_new: 'boolean', list: 'object' });
const listDetails = record({ id: 'id', public_name: 'link' });
const template = record({ id: 'text', name: 'text' });
const message = record({ id: 'text', to: 'text', state: 'text' });
const messageDetail = every(message, record({ delivery_attempts: 'array' }));
const importCounts = record({
	created: 'count',
	updated: 'count',
	unchanged: 'count',
	duplicate: 'count',
	rejected: 'count',
});
const session = every(record({ id: 'text', position: 'count' }), optional('counts', importCounts));
const importAck = ackOf(importCounts);

const figures = record({ created: 'count', sent: 'count', opened: 'count', clicked: 'count' });
const dated = listOf(every(figures, record({ date: 'text' })));
const bounceCounts = record({ softbounced: 'count', hardbounced: 'count' });
const joined = record({ added: 'count', unsubscribed: 'count', bounced: 'count', left: 'count' });
const growth = every(
	joined,
	record({ id: 'id', name: 'text', active: 'count' }),
	within('days', listOf(every(joined, record({ date: 'text' })))),
);
const details = every(
	record({ from: 'text', to: 'text', time_zone: 'text' }),
	within('total', every(figures, record({ attempted: 'count', delivered: 'count' }))),
	within('days', dated),
	within('hours', dated),
	within('week', listOf(every(figures, record({ weekday: 'count', hour: 'count' })))),
	within(
		'bounces',
		every(
			within('domains', listOf(every(bounceCounts, record({ domain: 'text' })))),
			within('codes', listOf(every(bounceCounts, record({ code: 'text' })))),
		),
	),
	optional('lists', listOf(growth)),
);

const links = every(
	within(
		'results',
		listOf(
			record({
				url: 'link',
				position: 'count',
				people: 'count',
				clicks: 'count',
				machine_people: 'count',
				machine_clicks: 'count',
			}),
		),
	),
	record({ left_out: 'count' }),
);

/** Every extension of this version, whether the deployment has it or not. */
export function extensions(endpoint: Endpoint): Extensions {
	const perform = async <T>(what: OperationRequest, check: Check): Promise<T> =>
		decode<T>(await requestOperation(endpoint, what), check);
	const performEmpty = async (what: OperationRequest) =>
		assertNothing(await requestOperation(endpoint, what));
	return {
		lists: {
			add: (body, call) => {
				const headers = { [headerNames.idempotencyKey]: call?.idempotencyKey ?? randomUUID() };
				return perform({ operation: 'ext.lists.add', body, headers, call, isRepeatable: true }, addedList);
			},
			get: (list_id, call) => perform({ operation: 'ext.lists.get', values: { list_id }, call }, listDetails),
			patch: (list_id, body, call) =>
				perform({ operation: 'ext.lists.patch', values: { list_id }, body, call }, listDetails),
		},
		imports: imports(perform),
		campaigns: campaigns(perform, performEmpty),
		audiences: audiences(perform),
		messages: {
			page: (request, call) =>
				perform({ operation: 'ext.messages.page', query: pageQuery(request), call }, pageOf(message)),
			slice: (request, call) =>
				perform(
					{ operation: 'ext.messages.slice', query: encodeQuery({ ...request }), call },
					every(within('results', listOf(message)), record({ next: 'link' })),
				),
			get: (uuid, call) => perform({ operation: 'ext.messages.get', values: { uuid }, call }, messageDetail),
			cancel: (uuid, call) =>
				perform({ operation: 'ext.messages.cancel', values: { uuid }, call }, messageDetail),
			retry: (uuid, call) =>
				perform({ operation: 'ext.messages.retry', values: { uuid }, call }, messageDetail),
			raw: (uuid, call) =>
				perform(
					{ operation: 'ext.messages.raw', values: { uuid }, call },
					record({ id: 'text', raw_base64: 'text' }),
				),
			progress: (scope, call) =>
				perform(
					{ operation: 'ext.messages.progress', query: encodeQuery({ ...scope }), call },
					record({ messages: 'object' }),
				),
		},
		templates: {
			page: (request, call) =>
				perform({ operation: 'ext.templates.page', query: pageQuery(request), call }, pageOf(template)),
			get: (uuid, call) => perform({ operation: 'ext.templates.get', values: { uuid }, call }, template),
			create: (body, call) => perform({ operation: 'ext.templates.create', body, call }, template),
			replace: (uuid, body, call) =>
				perform({ operation: 'ext.templates.replace', values: { uuid }, body, call }, template),
			patch: (uuid, body, call) =>
				perform({ operation: 'ext.templates.patch', values: { uuid }, body, call }, template),
			delete: (uuid, call) => performEmpty({ operation: 'ext.templates.delete', values: { uuid }, call }),
		},
		reports: {
			report: (query, call) => report(endpoint, 'ext.reports.report', { query, call }),
			details: (query, call) =>
				perform({ operation: 'ext.reports.details', query: encodeQuery({ ...query }), call }, details),
			links: (uuid, call) => perform({ operation: 'ext.reports.links', values: { uuid }, call }, links),
		},
		subscribers: {
			// Our own server accepts meta as an object; the string form is for other deployments.
			merge: (list_id, id, body, call) =>
				perform(
					{ operation: 'ext.subscribers.merge', values: { list_id, id }, body, call },
					record({ id: 'id', email: 'text', meta: 'object' }),
				),
			// Idempotent, so it may be repeated after no answer.
			add: (list_id, subscriber, options, call) =>
				perform(
					{
						operation: 'ext.subscribers.add',
						values: { list_id },
						body: { subscriber, ...options },
						call,
						isRepeatable: true,
					},
					record({ id: 'id', email: 'text', meta: 'object' }),
				),
			clear: async (list_id, call) => {
				const what: OperationRequest = { operation: 'ext.subscribers.clear', values: { list_id }, call };
				return (await perform<{ deleted: number }>(what, record({ deleted: 'count' }))).deleted;
			},
		},
		fields: {
			countUses: async (id, call) => {
				const what: OperationRequest = { operation: 'ext.fields.countUses', values: { id }, call };
				return (await perform<{ count: number }>(what, record({ count: 'count' }))).count;
			},
		},
		erasures: {
			erase: (email, call) =>
				perform(
					{ operation: 'ext.erasures.erase', body: { email }, call },
					record({ subscribers: 'count', messages: 'count' }),
				),
			lift: (email, call) => performEmpty({ operation: 'ext.erasures.lift', body: { email }, call }),
		},
		exports: exportsOf(endpoint),
		tuples: tuplesOf(endpoint),
		deliveries: deliveries(perform),
		suppressions: suppressions(perform),
		people: people(perform),
		attachments: attachments(perform),
	};
}

function attachments(perform: Perform): Extensions['attachments'] {
	const stored = record({ sha256: 'text', size: 'count' });
	return {
		find: (sha256, call) => perform({ operation: 'ext.attachments.find', values: { sha256 }, call }, stored),
		put: (sha256, body, call) =>
			perform({ operation: 'ext.attachments.put', values: { sha256 }, body, call }, stored),
	};
}

function imports(perform: Perform): Extensions['imports'] {
	return {
		open: (key, spec, call) =>
			perform({ operation: 'ext.imports.open', body: { ...spec, key }, call }, session),
		put: (uuid, { first, ...body }, call) =>
			perform({ operation: 'ext.imports.put', values: { uuid, first }, body, call }, importAck),
		finish: (uuid, call) =>
			perform({ operation: 'ext.imports.finish', values: { uuid }, call }, importCounts),
	};
}

const delivery: Check = record({ id: 'text', state: 'text', attempts: 'count' });
const stopped: Check = within(
	'stopped',
	listOf(record({ webhook_id: 'id', date_stopped: 'text', waiting: 'count' })),
);
const secrets: Check = within('secrets', listOf(record({ secret: 'text' })));

function deliveries(perform: Perform): Deliveries {
	const listed = async (what: OperationRequest) =>
		(await perform<{ secrets: SigningSecret[] }>(what, secrets)).secrets;
	return {
		page: (id, request, call) =>
			perform(
				{ operation: 'ext.deliveries.page', values: { id }, query: pageQuery(request), call },
				pageOf(delivery),
			),
		get: (id, uuid, call) =>
			perform(
				{ operation: 'ext.deliveries.get', values: { id, uuid }, call },
				every(delivery, record({ payload: 'text', delivery_attempts: 'array' })),
			),
		replay: async (id, body, call) => {
			const what: OperationRequest = { operation: 'ext.deliveries.replay', values: { id }, body, call };
			return (await perform<{ replayed: number }>(what, record({ replayed: 'count' }))).replayed;
		},
		stopped: async (call) => {
			const what: OperationRequest = { operation: 'ext.deliveries.stopped', call };
			return (await perform<{ stopped: StoppedWebhook[] }>(what, stopped)).stopped;
		},
		secrets: (call) => listed({ operation: 'ext.deliveries.secrets', call }),
		rotateSecret: (call) => listed({ operation: 'ext.deliveries.rotateSecret', call }),
	};
}

const suppression: Check = record({ email: 'text', reason: 'text', source: 'text' });
const ack = every(
	within('counts', record({ created: 'count', updated: 'count', unchanged: 'count', rejected: 'count' })),
	within('rejects', listOf(record({ row: 'count', code: 'text', error: 'text' }))),
);

function suppressions(perform: Perform): Suppressions {
	return {
		page: (request, call) =>
			perform({ operation: 'ext.suppressions.page', query: pageQuery(request), call }, pageOf(suppression)),
		slice: (request, call) =>
			perform(
				{ operation: 'ext.suppressions.slice', query: encodeQuery({ ...request }), call },
				every(within('results', listOf(suppression)), record({ next: 'link' })),
			),
		create: (body, call) => perform({ operation: 'ext.suppressions.create', body, call }, suppression),
		put: (rows, call) => perform({ operation: 'ext.suppressions.put', body: { rows }, call }, ack),
		check: (rows, call) => perform({ operation: 'ext.suppressions.check', body: { rows }, call }, ack),
		remove: (body, call) =>
			perform(
				{ operation: 'ext.suppressions.remove', body, call },
				every(within('removed', listOf(suppression)), record({ inactive_subscribers: 'count' })),
			),
	};
}

const person = every(
	within('subscribers', listOf(record({ id: 'id', list_id: 'id', email: 'text' }))),
	within('suppressions', listOf(suppression)),
	within('left_out', listOf(record({ campaign: 'text', key: 'text', code: 'text' }))),
	record({ email: 'text', messages: 'count', copies: 'array', is_known: 'boolean' }),
);
const personMessages = every(
	within('results', listOf(every(messageDetail, record({ visits: 'array' })))),
	record({ next: 'position' }),
);

function people(perform: Perform): Extensions['people'] {
	return {
		get: (email, call) =>
			perform({ operation: 'ext.people.get', query: encodeQuery({ email }), call }, person),
		messages: (email, request, call) => {
			const query = encodeQuery({ email, ...request });
			return perform({ operation: 'ext.people.messages', query, call }, personMessages);
		},
	};
}
