/** The API as an OpenAPI 3.1 document, made from the table of routes, the validators and the records. */
import { tupleKeyNames } from '../../../api/exports.js';
import { messageStates } from '../../../api/records.js';
import { reportQuery } from '../../../api/reports.js';
import type { JsonSchema } from '../../../api/schema/field.js';
import { headerNames, neededScopes } from '../../errors.js';
import { metricsPath, type Operation, openPaths, type Route, routes, scopesOf } from '../../routes.js';
import { type Bodies, bodiesOf, inputSchemas } from './bodies.js';
import { recordSchemas } from './records.js';
import { ref } from './shapes.js';

/** A fresh document each time; plain data. */
export function describeApi(version: string): Record<string, unknown> {
	return {
		openapi: '3.1.0',
		info: {
			title: 'mailctl',
			version,
			description: 'Subscriber lists, sending, reports and notifications. A last slash may be left out.',
		},
		paths: { ...apiPaths(), ...servicePaths() },
		components: {
			schemas: { ...recordSchemas, ...inputSchemas },
			responses: errorResponses,
			securitySchemes: {
				token: { type: 'apiKey', in: 'header', name: headerNames.token },
				bearer: { type: 'http', scheme: 'bearer', description: `For ${metricsPath} only.` },
			},
		},
		security: [{ token: [] }],
	};
}

function apiPaths(): Record<string, object> {
	const paths: Record<string, Record<string, object>> = {};
	// Keys and values of the table belong together; Object.entries forgets that.
	for (const [operation, route] of Object.entries(routes) as [Operation, Route][]) {
		const path = paths[route.path] ?? {};
		path[route.method.toLowerCase()] = describeOperation(operation, route, bodiesOf[operation]);
		paths[route.path] = path;
	}
	return paths;
}

function describeOperation(operation: Operation, route: Route, { input, output }: Bodies): object {
	const parameters = [
		...pathParameters(route.path),
		...queryParameters(route),
		...headerParameters(operation),
	];
	return {
		operationId: operation,
		tags: [groupOf(operation)],
		description: `${neededScopes(scopesOf(route))}.${ownText(operation, route)}`,
		...(parameters.length > 0 && { parameters }),
		...(input !== null && {
			requestBody: { required: true, content: { [mediaTypeOf(route)]: { schema: input } } },
		}),
		responses: { [route.success]: success(operation, output), ...errorsOf(operation, route) },
	};
}

function mediaTypeOf({ body }: Route): string {
	return body === 'file' ? 'application/octet-stream' : 'application/json';
}

/** `lists` of `lists.get`, `templates` of `ext.templates.get`. */
function groupOf(operation: Operation): string {
	return operation.replace(/^ext\./, '').split('.')[0] ?? operation;
}

function success(operation: Operation, output: JsonSchema | null): object {
	if (output === null) return { description: 'Done; no body.' };
	return {
		description: 'Done.',
		...(operation in answerHeaders && { headers: answerHeaders[operation] }),
		content: { 'application/json': { schema: output } },
	};
}

/** Messages and campaigns belong to the token that sent them. */
function ownText(operation: Operation, { scope, method }: Route): string {
	if (scope !== 'send' || !['campaigns', 'messages'].includes(groupOf(operation))) return '';
	return method === 'GET'
		? ' Without read or admin, what other tokens sent is not there.'
		: ' Without admin, what other tokens sent is not there.';
}

const nextHeader = {
	[headerNames.next]: {
		description: 'The same as next, before the body is read; absent where nothing follows.',
		schema: { type: 'integer' },
	},
};

const answerHeaders: Readonly<Partial<Record<Operation, object>>> = {
	send: {
		[headerNames.campaign]: {
			description: 'The campaign of a BULK call.',
			schema: { type: 'string', format: 'uuid' },
		},
		[headerNames.submission]: { description: 'The submission.', schema: { type: 'string', format: 'uuid' } },
		[headerNames.idempotencyReplayed]: {
			description: 'This is the answer to an earlier request with the same key.',
			schema: { const: 'true' },
		},
	},
	'ext.exports.slice': nextHeader,
	'ext.tuples.slice': nextHeader,
};

function headerParameters(operation: Operation): object[] {
	if (routes[operation].isKeyed !== true) return [];
	return [
		{
			name: headerNames.idempotencyKey,
			in: 'header',
			description: 'The same key and body within 24 hours: the first answer again; another body: 422.',
			schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
		},
	];
}

function pathParameters(path: string): object[] {
	return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
		name,
		in: 'path',
		required: true,
		schema: pathSchemas[name] ?? { type: 'integer', minimum: 0 },
	}));
}

const pathSchemas: Readonly<Record<string, JsonSchema>> = {
	uuid: { type: 'string', format: 'uuid' },
	sha256: { type: 'string', pattern: '^[0-9a-fA-F]{64}$' },
};

const boolean = { type: 'string', enum: ['True', 'False', 'true', 'false', '1', '0'] };

function queryParameters({ query = [] }: Route): object[] {
	return query.map((name) => ({ name, in: 'query', schema: querySchemas()[name] ?? { type: 'string' } }));
}

function querySchemas(): Readonly<Record<string, JsonSchema>> {
	const { properties } = reportQuery.jsonSchema();
	return {
		// Schemas of the declared fields, as fieldSet makes them.
		...(properties as Record<string, JsonSchema>),
		page: { anyOf: [{ type: 'integer', minimum: 1 }, { const: 'last' }], default: 1 },
		page_size: { type: 'integer', minimum: 1, maximum: 1000, default: 100 },
		after: { type: 'integer', minimum: 0, default: 0 },
		limit: { type: 'integer', minimum: 1, maximum: 1000, default: 1000 },
		is_active: boolean,
		human: boolean,
		status: { type: 'string', enum: [...messageStates] },
		submission: { type: 'string', format: 'uuid' },
		campaign: { type: 'string', format: 'uuid' },
		only: { type: 'string', enum: ['findings'] },
		keys: { type: 'string', enum: [...tupleKeyNames], default: 'imported' },
	};
}

const errorTexts = {
	400: ['Invalid', 'The input is refused, or is no JSON.'],
	401: ['Refusal', 'The token is missing or unknown.'],
	403: ['Refusal', 'The token lacks the scope.'],
	404: ['Refusal', 'There is no such thing.'],
	409: ['Refusal', 'It is not the time for that, or the same request is under way.'],
	413: ['Refusal', 'The body is too large.'],
	415: ['Refusal', 'The body is not JSON.'],
	422: ['Refusal', 'The Idempotency-Key stands for another request.'],
	429: ['Refusal', 'Too many requests; Retry-After says when.'],
	500: ['Refusal', 'A bug, or a failure of the service.'],
	503: ['Refusal', 'The service is busy; Retry-After says when.'],
	507: ['Refusal', 'The disk of the service is full.'],
} as const;

const errorResponses = Object.fromEntries(
	Object.entries(errorTexts).map(([status, [schema, description]]) => [
		`Error${status}`,
		{
			description,
			headers: { [headerNames.errorCode]: { schema: { type: 'string' } }, ...scopeHeadersOf(status) },
			content: { 'application/json': { schema: errorSchema(schema) } },
		},
	]),
);

function scopeHeadersOf(status: string): object {
	if (status !== '403') return {};
	const header = (description: string) => ({ description, schema: { type: 'string' } });
	return {
		[headerNames.acceptedScopes]: header(
			'The scopes that the call takes, all of one set: `send read, admin`.',
		),
		[headerNames.tokenScopes]: header('The scopes of the token: `send`.'),
	};
}

function errorSchema(name: string): JsonSchema {
	return name === 'Invalid' ? { anyOf: [ref('Invalid'), ref('Refusal')] } : ref(name);
}

function errorsOf(operation: Operation, route: Route): Record<string, object> {
	const isSession = ['imports', 'campaigns'].includes(groupOf(operation));
	const isSend = operation === 'send';
	const statuses = [
		400,
		401,
		403,
		404,
		...(isSession || isSend ? [409] : []),
		...(route.body !== undefined ? [413, 415] : []),
		...(route.isKeyed === true ? [422] : []),
		429,
		500,
		503,
		...(route.method === 'GET' ? [] : [507]),
	];
	return Object.fromEntries(
		statuses.map((status) => [status, { $ref: `#/components/responses/Error${status}` }]),
	);
}

function servicePaths(): Record<string, object> {
	const open = (operationId: string, schema: JsonSchema, more: Record<string, object> = {}) => ({
		get: {
			operationId,
			tags: ['service'],
			security: [],
			responses: {
				200: { description: 'Done.', content: { 'application/json': { schema } } },
				...more,
			},
		},
	});
	const status = { type: 'object', properties: { status: { type: 'string' } }, required: ['status'] };
	return {
		[openPaths.root]: open('service.root', rootSchema),
		[openPaths.health]: open('service.health', status),
		[openPaths.ready]: open('service.ready', status, {
			503: { description: 'Not ready; `detail` says why.' },
		}),
		[openPaths.openapi]: open('service.openapi', { type: 'object' }),
		[metricsPath]: {
			get: {
				operationId: 'service.metrics',
				tags: ['service'],
				description: `${neededScopes([['read']])}.`,
				security: [{ token: [] }, { bearer: [] }],
				responses: {
					200: { description: 'For Prometheus.', content: { 'text/plain': { schema: { type: 'string' } } } },
					401: { $ref: '#/components/responses/Error401' },
					403: { $ref: '#/components/responses/Error403' },
				},
			},
		},
	};
}

const rootSchema: JsonSchema = {
	type: 'object',
	properties: {
		service: { const: 'mailctl' },
		version: { type: 'string' },
		extensions: { type: 'array', items: { type: 'string' } },
	},
	required: ['service', 'version', 'extensions'],
};
