/** Whether a deployment is ours, and what it can: `GET /`, once, and never an error (api-decisions 37). */
import type { Capabilities, Extensions } from '../../api/capabilities.js';
import { type Clock, microsPerSecond } from '../../api/datetime.js';
import { openPaths } from '../routes.js';
import { readJson } from './json-body.js';
import type { Answer, Transport } from './transport.js';

/** A deployment may be upgraded under a long import. */
const keptMicros = 3_600 * microsPerSecond;
/** Not worth more: a deployment of another kind may let it hang. */
const maxWaitMs = 5_000;

const unknown: Capabilities = { service: 'unknown', idempotentSend: false, ext: {} };

/** What it takes to ask, and what may be found. */
export interface Learner {
	transport: Transport;
	prefix: string;
	timeoutMs: number;
	clock: Clock;
	trace: (line: string) => void;
	/** All there are. */
	extensions: Extensions;
}

/** Asks at the first call, then remembers for an hour. It needs no token, so none goes along. */
export function createLearner(learner: Learner): () => Promise<Capabilities> {
	let learnt: { at: number; capabilities: Promise<Capabilities> } | null = null;
	return () => {
		const now = learner.clock.now();
		if (learnt === null || now - learnt.at > keptMicros) learnt = { at: now, capabilities: ask(learner) };
		return learnt.capabilities;
	};
}

async function ask({ transport, prefix, timeoutMs, trace, extensions }: Learner): Promise<Capabilities> {
	const path = prefix + openPaths.root;
	trace(`> GET ${path}`);
	const answer = await transport
		.exchange({
			method: 'GET',
			path,
			headers: { Accept: 'application/json', 'Accept-Encoding': 'gzip' },
			body: null,
			timeoutMs: Math.min(maxWaitMs, timeoutMs),
		})
		.catch(() => null);
	trace(
		answer === null
			? '< nothing'
			: `< ${answer.status} in ${Math.round(answer.durationMs)} ms, ${answer.body.length} bytes`,
	);
	return answer === null ? unknown : read(answer, extensions);
}

function read({ status, body }: Answer, extensions: Extensions): Capabilities {
	if (status < 200 || status > 299) return unknown;
	const json = readJson(body);
	if (json.kind !== 'valid' || typeof json.value !== 'object' || json.value === null) return unknown;
	if (!('service' in json.value) || json.value.service !== 'mailctl') return unknown;
	const announced = 'extensions' in json.value ? namesOf(json.value.extensions) : new Set<string>();
	const ext = Object.fromEntries(Object.entries(extensions).filter(([name]) => announced.has(name)));
	return { service: 'mailctl', idempotentSend: true, ext };
}

/** A list of names, or an object of name → number. */
function namesOf(value: unknown): ReadonlySet<string> {
	if (Array.isArray(value)) return new Set(value.filter((name) => typeof name === 'string'));
	return new Set(typeof value === 'object' && value !== null ? Object.keys(value) : []);
}
