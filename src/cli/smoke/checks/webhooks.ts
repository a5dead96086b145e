/**
 * HTTP notifications. Service document, "HTTP notifications". The target is a name that never resolves (RFC 2606), so
 * that an event of these seconds reaches no stranger; run_test is called only where `--send-to` allows calls outside.
 */
import { isRecord } from '../../../api/json.js';
import { expectStatus } from '../assertions.js';
import type { Answer, Ask } from '../caller.js';
import { type CheckContext, paths } from '../check-context.js';
import type { Check, Probe } from '../model.js';
import { type Json, webhookShape } from '../shapes.js';
import { collectionChecks } from './collections.js';
import { crudChecks } from './crud.js';

/** In the order of `crudChecks`. Where an unresolvable name is refused, `create` and its dependents are skipped. */
export function webhookChecks({ names, records }: CheckContext): Check[] {
	const path = async () => paths.webhooks;
	const base = { group: 'webhooks', one: 'webhook', shape: webhookShape, path } as const;
	const secret = { login: 'smoke', password: names.id };
	const body = { url: names.url, type: 'SOFTBOUNCED', is_auth_enabled: true, ...secret };
	const replaced = { url: `${names.url}-replaced`, type: 'HARDBOUNCED' };
	const none = { is_auth_enabled: false, login: '', password: '' };
	return crudChecks(
		{
			...base,
			mark: 'url',
			post: (probe, ask) => records.create(probe, 'webhook', ask),
			create: async () => ({ body, expected: body }),
			patch: { url: `${names.url}-patched` },
			replace: { body: replaced, expected: replaced, decided: none },
			// A name that resolves belongs to a stranger, who must not get events: then the check is skipped.
			mayRefuse: { key: 'url', why: 'the deployment refuses a URL whose name does not resolve' },
			refusals: [
				{
					id: 'requires-type',
					what: 'a webhook without a type',
					body: { url: `${names.url}-refused` },
					key: 'type',
					isDocumented: true,
				},
				{
					id: 'known-type',
					what: 'a webhook of an unknown type',
					body: { url: `${names.url}-refused`, type: 'SMOKED' },
					key: 'type',
					isDocumented: true,
				},
			],
		},
		collectionChecks(base),
		(made) => [testCheck(made)],
	);
}

/** The document shows neither status nor body of run_test: any 2xx will do (api-decisions 33). */
function testCheck(made: { get(): Json }): Check {
	return {
		id: 'webhooks.test',
		group: 'webhooks',
		title: 'run_test is answered',
		need: 'call',
		run: async (probe) => {
			const ask: Ask = { method: 'GET', path: `${paths.webhooks}${String(made.get()['id'])}/run_test/` };
			const answer = await tested(probe, ask);
			const result = isRecord(answer.json) ? answer.json['result'] : undefined;
			if (typeof result !== 'boolean') probe.deviate('the answer to run_test has no result');
			return undefined;
		},
	};
}

async function tested(probe: Probe, ask: Ask): Promise<Answer> {
	const answer = await probe.call(ask);
	return answer.status > 200 && answer.status < 300
		? answer
		: expectStatus({ ...probe, call: async () => answer }, ask, 200);
}
