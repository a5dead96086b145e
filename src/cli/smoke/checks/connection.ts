/** Checks that the deployment answers, what service it is, and that it checks tokens. */
import { ApiError } from '../../../api/errors.js';
import { expectObject, expectRefusal, said } from '../assertions.js';
import type { Answer } from '../caller.js';
import { type CheckContext, paths } from '../check-context.js';
import { type Check, Halted, type Probe, Skipped } from '../model.js';

/** The first is a precondition (see `planChecks`): without an answer of the service it throws `Halted`, and nothing else is checked. */
export function connectionChecks(context: CheckContext): Check[] {
	return [
		{
			id: 'connection.reachable',
			group: 'connection',
			title: 'the deployment answers',
			need: 'read',
			judgesRefusals: true,
			run: async (probe) => {
				const answer = await reach(probe);
				const other = otherThanLists(answer);
				if (other !== null)
					throw new Halted('elsewhere', `this is not the service: ${said(answer)} ${other}`);
				const { status } = answer;
				return status >= 500 ? `with ${status}` : undefined;
			},
		},
		{
			id: 'connection.service',
			group: 'connection',
			title: 'what it says of itself is understood',
			need: 'read',
			run: async () => {
				const { api } = await context.connection();
				const { service, ext } = await api.capabilities();
				if (service === 'unknown') return 'a service that is not mailctl';
				return `mailctl with ${Object.keys(ext).sort().join(', ') || 'no extensions'}`;
			},
		},
		{
			id: 'connection.slash',
			group: 'connection',
			title: 'a path without its last slash is found',
			need: 'read',
			run: async (probe) => {
				const path = paths.lists.slice(0, -1);
				const { status } = await probe.call({ method: 'GET', path });
				// Of the token, and not of the path.
				if (status === 401) throw new Skipped('the token is refused');
				if (status !== 200) probe.deviate(`GET ${path} is a ${status}`);
				return undefined;
			},
		},
		{
			id: 'connection.unknown',
			group: 'connection',
			title: 'a path that is not the service’s is refused in JSON',
			need: 'read',
			judgesRefusals: true,
			run: async (probe) => {
				const answer = await probe.call({ method: 'GET', path: '/sub/mailctl-smoke/' });
				expectRefusal(probe, answer, { what: 'an unknown path', statuses: [404] });
				return undefined;
			},
		},
	];
}

/** The first is a gate as well: it throws `Halted` where the token, or its absence, is refused. */
export function authChecks(context: CheckContext): Check[] {
	const { hasToken, names } = context;
	const refuses = (id: string, title: string, token: string | null): Check => ({
		id,
		group: 'auth',
		title,
		need: 'read',
		run: async (probe) => {
			const answer = await probe.call({ method: 'GET', path: paths.lists, token });
			const what = token === null ? 'a request without a token' : 'a wrong token';
			// Clients treat both alike (api-decisions 3), but 401 names the reason.
			expectRefusal(probe, answer, { what, statuses: [401] });
			return undefined;
		},
	});
	return [
		{
			id: 'auth.token',
			group: 'auth',
			title: 'the token is accepted',
			need: 'read',
			judgesRefusals: true,
			run: async (probe) => {
				const answer = await probe.call({ method: 'GET', path: paths.lists });
				if (answer.status === 403 && (await isOurs(context))) return 'it may not read lists';
				const isRefused = answer.status === 401 || answer.status === 403;
				if (isRefused && !hasToken)
					throw new Halted('refused', `${said(answer)} ${answer.status}, and there is no token to give`);
				if (isRefused) throw new Halted('refused', `${said(answer)} ${answer.status} to the token given`);
				const answered: Probe = { ...probe, call: async () => answer };
				await expectObject(answered, { method: 'GET', path: paths.lists }, 200);
				return undefined;
			},
		},
		refuses('auth.wrong', 'a wrong token is refused', `mailctl-smoke-${names.id}`),
		refuses('auth.none', 'a request without a token is refused', null),
	];
}

/** A mailctl server answers 401 to a token that it does not know: its 403 is a missing right. */
async function isOurs({ connection }: CheckContext): Promise<boolean> {
	const { api } = await connection();
	return (await api.capabilities()).service !== 'unknown';
}

/** What no deployment answers to a question for its lists; null: a deployment may answer so. */
function otherThanLists({ status, headers, text, json }: Answer): string | null {
	if (status >= 300 && status < 400) return `${status} and redirects to ${headers['location'] ?? 'nowhere'}`;
	if (status === 404) return '404';
	if (status >= 500 || json !== undefined) return null;
	return /^\s*</.test(text) ? `${status} with a web page` : null;
}

async function reach(probe: Probe): Promise<Answer> {
	try {
		// A host that never answers must not use up the deadline.
		return await probe.call({ method: 'GET', path: paths.lists, retries: 1 });
	} catch (error) {
		if (error instanceof ApiError && error.code === 'network') throw new Halted('unreachable', error.message);
		if (error instanceof ApiError && error.misdirected === 'protocol')
			throw new Halted('elsewhere', `this is not the service: ${error.message}`);
		throw error;
	}
}
