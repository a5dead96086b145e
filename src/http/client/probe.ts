import type { Capabilities, Extensions } from '../../api/capabilities.js';
import { ApiError } from '../../api/errors.js';
import { readJson } from '../../api/json.js';
import { openPaths } from '../../api/operations.js';
import { type Endpoint, requestPath, type Success } from './request.js';

const unknown: Capabilities = { service: 'unknown', idempotentSend: false, ext: {} };

interface Probe {
	endpoint: Endpoint;
	extensions: Extensions;
	signal: AbortSignal | undefined;
}

export function createProbe(probe: Probe): () => Promise<Capabilities> {
	let found: Promise<Capabilities> | null = null;
	return () => {
		found ??= run(probe).catch((error: unknown) => {
			found = null;
			throw error;
		});
		return found;
	};
}

/** If one failure of a proxy made our server look foreign, recipients would get the mail again. */
async function run({ endpoint, extensions, signal }: Probe): Promise<Capabilities> {
	const target = { method: 'GET', path: endpoint.prefix + openPaths.root, isRepeatable: true } as const;
	try {
		const call = signal === undefined ? {} : { signal };
		return read(await requestPath({ ...endpoint, token: null }, target, { call }), extensions);
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		const status = error.http?.status ?? 500;
		if (status < 500 && ![408, 425, 429].includes(status)) return unknown;
		// Nothing was requested but this, so nothing can have happened.
		throw error.with({
			code: error.code === 'invalid' ? 'network' : error.code,
			message: `This service does not say what it is: ${error.message}`,
			unanswered: false,
		});
	}
}

function read({ answer }: Success, extensions: Extensions): Capabilities {
	const json = readJson(answer.body);
	if (json.kind !== 'valid' || typeof json.value !== 'object' || json.value === null) return unknown;
	if (!('service' in json.value) || json.value.service !== 'mailctl') return unknown;
	const announced = 'extensions' in json.value ? namesOf(json.value.extensions) : new Set<string>();
	const ext = Object.fromEntries(Object.entries(extensions).filter(([name]) => announced.has(name)));
	return { service: 'mailctl', idempotentSend: true, ext };
}

function namesOf(value: unknown): ReadonlySet<string> {
	if (Array.isArray(value)) return new Set(value.filter((name) => typeof name === 'string'));
	return new Set(typeof value === 'object' && value !== null ? Object.keys(value) : []);
}
