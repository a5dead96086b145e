import { bodies } from '../../api/bodies.js';
import {
	metricsPath,
	type Operation,
	type OperationName,
	openPaths,
	operations,
	placeholdersOf,
	scopesOf,
} from '../../api/operations.js';
import type { JsonSchema } from '../../api/schema/fields.js';
import { components, record, text } from '../../api/schema/record.js';
import { headerNames, neededScopes } from '../wire.js';

export function describeApi(version: string): Record<string, unknown> {
	return {
		openapi: '3.1.0',
		info: {
			title: 'mailctl',
			version,
			description:
				'Subscriber lists, sending, reports and notifications. The last slash of a path may be left out.',
		},
		paths: { ...apiPaths(), ...servicePaths() },
		components: {
			schemas: { ...answerSchemas(), ...bodySchemas() },
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
	for (const [name, operation] of Object.entries(operations) as [OperationName, Operation][]) {
		const path = paths[operation.path] ?? {};
		path[operation.method.toLowerCase()] = describeOperation(name, operation);
		paths[operation.path] = path;
	}
	return paths;
}

const answerNames =
	'List AddedList ListDetails Subscriber Field Webhook TestResult SendResult Report ReportDetails CampaignFigures CampaignLink CampaignLinks Template Sender LoggedEvents Message MessageDetail AttachedFile StoredBytes MessageEvent MessageReport DeliveryAttempt RawMessage SendingProgress Deleted Count SubscriberSlice TupleSlice Erasure Session CampaignSession Reject ImportCounts ImportAck AcceptCounts AcceptAck ListAck CampaignStatus Campaign Audience CampaignPlan PlannedTiming ListCounts AudiencePart LeftOutPeople CampaignResult CampaignResults Suppression SuppressionSlice SuppressionAck SuppressionRemoval Person MessageSlice DeletedMessages PersonMessages WebhookDelivery WebhookDeliveryDetail Replayed StoppedWebhooks SigningSecrets';

function answerSchemas(): Record<string, JsonSchema | undefined> {
	return {
		...Object.fromEntries(answerNames.split(' ').map((name) => [name, components.get(name)?.()])),
		Refusal: record({ detail: text }).schema(),
		Invalid: {
			type: 'object',
			description:
				'Errors by field; in lists and dictionaries, by index or key. Errors about several fields are in non_field_errors.',
			additionalProperties: { anyOf: [{ type: 'array', items: text.schema() }, { type: 'object' }] },
		},
	};
}

function bodySchemas(): Record<string, JsonSchema> {
	const named = Object.entries(bodies).filter(([, { size }]) => size !== 'file');
	return Object.fromEntries(named.map(([name, { schema }]) => [name, schema]));
}

function ref(name: string): JsonSchema {
	return { $ref: `#/components/schemas/${name}` };
}

function describeOperation(name: OperationName, operation: Operation): object {
	const { path, query = {}, body, success, answer } = operation;
	const parameters = [
		...pathParameters(path),
		...Object.entries(query).map(([parameter, { schema }]) => ({ name: parameter, in: 'query', schema })),
		...(operation.isKeyed === true ? [keyParameter] : []),
	];
	return {
		operationId: name,
		tags: [groupOf(name)],
		description: `${neededScopes(scopesOf(operation))}.${ownText(name, operation)}`,
		...(parameters.length > 0 && { parameters }),
		...(body !== undefined && { requestBody: { required: true, content: contentOf(body) } }),
		responses: { [success]: describeSuccess(name, answer?.schema()), ...errorsOf(name, operation) },
	};
}

function contentOf(name: keyof typeof bodies): object {
	const { size, schema } = bodies[name];
	return size === 'file'
		? { 'application/octet-stream': { schema } }
		: { 'application/json': { schema: ref(name) } };
}

function groupOf(operation: OperationName): string {
	return operation.replace(/^ext\./, '').split('.')[0] ?? operation;
}

function describeSuccess(operation: OperationName, answer: JsonSchema | undefined): object {
	if (answer === undefined) return { description: 'Done; no body.' };
	return {
		description: 'Done.',
		...(operation in answerHeaders && { headers: answerHeaders[operation] }),
		content: { 'application/json': { schema: answer } },
	};
}

function ownText(operation: OperationName, { scope, method }: Operation): string {
	if (scope !== 'send' || !['campaigns', 'messages'].includes(groupOf(operation))) return '';
	return method === 'GET'
		? ' Without the scope read or admin, the answer leaves out what other tokens sent.'
		: ' Without the scope admin, the answer leaves out what other tokens sent.';
}

const nextHeader = {
	[headerNames.next]: {
		description: 'The same value as `next` in the body. Absent if `next` is null.',
		schema: { type: 'integer' },
	},
};

const answerHeaders: Readonly<Partial<Record<OperationName, object>>> = {
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

const keyParameter = {
	name: headerNames.idempotencyKey,
	in: 'header',
	description: 'Within 24 hours, the same key and body get the first answer again; another body gets 422.',
	schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
};

function pathParameters(path: string): object[] {
	return placeholdersOf(path).map((name) => ({
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

const errorTexts = {
	400: 'The input is refused or is not JSON.',
	401: 'The token is missing or unknown.',
	403: 'The token lacks a required scope.',
	404: 'Nothing exists at this path.',
	409: 'The current state does not allow the request, or the same request is in progress.',
	413: 'The body is too large.',
	415: 'The Content-Type or Content-Encoding is not supported.',
	422: 'The Idempotency-Key was used for another request.',
	429: 'Too many requests; Retry-After says when to try again.',
	500: 'A bug, or a failure of the service.',
	503: 'The service is busy; Retry-After says when to try again.',
	507: 'The disk of the service is full.',
};

const errorResponses = Object.fromEntries(
	Object.entries(errorTexts).map(([status, description]) => [
		`Error${status}`,
		{
			description,
			headers: { [headerNames.errorCode]: { schema: { type: 'string' } }, ...scopeHeadersOf(status) },
			content: {
				'application/json': {
					schema: status === '400' ? { anyOf: [ref('Invalid'), ref('Refusal')] } : ref('Refusal'),
				},
			},
		},
	]),
);

function scopeHeadersOf(status: string): object {
	if (status !== '403') return {};
	const header = (description: string) => ({ description, schema: { type: 'string' } });
	return {
		[headerNames.acceptedScopes]: header(
			'The scopes that allow the call, such as `send read, admin`: a token needs `send` and `read`, or `admin`.',
		),
		[headerNames.tokenScopes]: header('The scopes of the token: `send`.'),
	};
}

function errorsOf(operation: OperationName, { body, isKeyed, method }: Operation): Record<string, object> {
	const isSession = ['imports', 'campaigns'].includes(groupOf(operation)) || operation === 'send';
	const ofBody = [
		...(isSession ? [409] : []),
		...(body === undefined ? [] : [413, 415]),
		...(isKeyed ? [422] : []),
	];
	const onDisk = method === 'GET' ? [] : [507];
	const statuses = [...[400, 401, 403, 404], ...ofBody, ...[429, 500, 503], ...onDisk];
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
