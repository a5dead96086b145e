import { isRecord } from '../../api/json.js';
import { Field, List, Subscriber, Webhook } from '../../api/records.js';
import type { CommandContext } from '../frame/context.js';
import { type Check, check, type Group } from './model.js';
import {
	type Answer,
	type Ask,
	Broken,
	isSame,
	type Json,
	type Probe,
	type Shapes,
	Skipped,
	shown,
	unexpected,
	withQuery,
} from './probe.js';
import type { RunNames } from './records.js';

export interface Given {
	readonly names: RunNames;
	readonly hasToken: boolean;
	readonly mail: { to: string; from: string } | null;
	readonly connection: CommandContext['connection'];
	readonly signal: AbortSignal;
}

export const listsPath = '/sub/lists/';
/** Larger than ids of any deployment; it fits 32 bits, as a larger id may be refused for its size. */
const unknownId = 2_147_483_647;

export function resourceChecks(given: Given): Check[] {
	return resourcesOf(given).flatMap(checksOf);
}

interface Resource {
	group: Group;
	one: string;
	shape: Shapes;
	/** The key that holds the run's name: a record with another name belongs to others and is not changed. */
	mark: string;
	existing(probe: Probe): Promise<string>;
	own(probe: Probe): Promise<string>;
	body: Json;
	defaults?: Json;
	patch: Json;
	replace: Json;
	/** Values after a PUT that the document leaves open: omitted keys return to their defaults (api-decisions 11). */
	decided?: Json;
	mayRefuse?: { key: string; why: string };
	looks?: readonly Step[];
	changes?: readonly Step[];
	refusals: readonly Refusal[];
}

interface Step {
	verb: string;
	title: string;
	run: (probe: Probe, path: string) => Promise<void>;
}

interface Refusal {
	verb: string;
	what: string;
	body: Json;
	key: string;
	/** The document leaves the refusal open: acceptance is a deviation. */
	isOpen?: true;
}

function resourcesOf({ names, mail }: Given): Resource[] {
	const email_reason = 'a check of this deployment';
	const at = (path: string) => ({ existing: async () => path, own: async () => path });
	/** Subscribers are put only into a list with the run's name, and are deleted with it. */
	const ownSubscribers = async (probe: Probe) => {
		const name = `${names.list}-subscribers`;
		const answer = await probe.call({ method: 'POST', path: listsPath, body: { name, email_reason } });
		const id = createdId(answer);
		if (id === null) throw unexpected(answer, 201);
		const { json } = await probe.get(`${listsPath}${id}/`);
		if (isRecord(json) && json['name'] === name) return subscribersPath(id);
		throw new Broken(`list ${id}, said to be the new one, has another name`);
	};
	return [
		{
			...{ group: 'lists', one: 'list', shape: List, mark: 'name' },
			...at(listsPath),
			body: { name: names.list, email_reason },
			defaults: { active_subscribers_count: 0, inactive_subscribers_count: 0, overall_subscribers_count: 0 },
			patch: { name: `${names.list}-patched` },
			replace: { name: `${names.list}-replaced`, email_reason: 'a check, replaced' },
			refusals: [
				{
					...{ verb: 'requires-reason', what: 'a list without email_reason', key: 'email_reason' },
					body: { name: `${names.list}-refused` },
				},
			],
		},
		{
			...{ group: 'subscribers', one: 'subscriber', shape: Subscriber, mark: 'email' },
			existing: someSubscribers,
			own: ownSubscribers,
			body: { email: `smoke-1.${names.email}`, name: 'Smoke One' },
			defaults: {
				...{ is_active: true, disable_reason: null, is_email_verified: false },
				...{ source: 'API', meta: {} },
			},
			patch: { email: `patched-smoke-1.${names.email}` },
			replace: { email: `replaced-smoke-1.${names.email}`, name: 'Smoke Replaced', is_active: false },
			looks: [
				{
					verb: 'filters',
					title: 'email__exact, email__icontains and is_active choose',
					run: judgeFilters,
				},
				{
					verb: 'unknown-list',
					title: 'the subscribers of an unknown list are a 404',
					run: async (probe) =>
						probe.refusal(await probe.get(subscribersPath(unknownId)), 'an unknown list', 404),
				},
			],
			changes: [
				{ verb: 'deactivate', title: 'PATCH deactivates, and the list counts it', run: deactivate },
				{
					verb: 'own-filters',
					title: 'the filters find the new subscriber and no other',
					run: async (probe, path) => {
						const list = collectionOf(path);
						const { email } = await probe.object({ method: 'GET', path }, 200);
						const body = { email: `smoke-2.${names.email}` };
						await probe.expect({ method: 'POST', path: list, body }, 201);
						for (const query of [{ email__exact: String(email) }, { is_active: 'False' }]) {
							const found = (await probe.page(withQuery(list, query))).results.map((row) => row['email']);
							if (!isSame(found, [email])) probe.fault(`${shown(query)} finds ${shown(found)}`);
						}
					},
				},
			],
			refusals: [
				{ verb: 'requires-email', what: 'a subscriber without an email', key: 'email', body: { name: 'x' } },
				{
					...{ verb: 'malformed', what: 'a malformed address', key: 'email', isOpen: true },
					body: { email: 'smoke' },
				},
				{
					...{ verb: 'unique', what: 'the same address twice in a list', key: 'email', isOpen: true },
					body: { email: `replaced-smoke-1.${names.email}` },
				},
				{
					...{ verb: 'unknown-meta', what: 'a meta key that is not a field', key: 'meta', isOpen: true },
					body: { email: `smoke-99.${names.email}`, meta: `{"${names.field}_none": "x"}` },
				},
			],
		},
		{
			...{ group: 'fields', one: 'field', shape: Field, mark: 'variable' },
			...at('/sub/fields/'),
			body: { variable: names.field, name: 'Smoke' },
			patch: { variable: `${names.field}_patched` },
			replace: { variable: `${names.field}_replaced`, name: 'Smoke, replaced' },
			refusals: [
				{
					...{ verb: 'requires-name', what: 'a field without a name', key: 'name' },
					body: { variable: `${names.field}_refused` },
				},
				{
					...{ verb: 'unique', what: 'a second field of the same variable', key: 'variable', isOpen: true },
					body: { variable: `${names.field}_replaced`, name: 'Smoke, replaced' },
				},
			],
		},
		{
			...{ group: 'webhooks', one: 'webhook', shape: Webhook, mark: 'url' },
			...at('/webhooks/'),
			body: {
				...{ url: names.webhook, type: 'SOFTBOUNCED' },
				...{ is_auth_enabled: true, login: 'smoke', password: names.id },
			},
			patch: { url: `${names.webhook}-patched` },
			replace: { url: `${names.webhook}-replaced`, type: 'HARDBOUNCED' },
			decided: { is_auth_enabled: false, login: '', password: '' },
			// A name that resolves belongs to a stranger, who must not get events (RFC 2606).
			mayRefuse: { key: 'url', why: 'the deployment refuses a URL whose name does not resolve' },
			// run_test calls a host outside of the deployment, which --send-to allows.
			changes: mail === null ? [] : [{ verb: 'test', title: 'run_test is answered', run: runTest }],
			refusals: [
				{
					...{ verb: 'requires-type', what: 'a webhook without a type', key: 'type' },
					body: { url: `${names.webhook}-refused` },
				},
				{
					...{ verb: 'known-type', what: 'a webhook of an unknown type', key: 'type' },
					body: { url: `${names.webhook}-refused`, type: 'SMOKED' },
				},
			],
		},
	];
}

/** The document shows neither status nor body of run_test: any 2xx will do (api-decisions 33). */
async function runTest(probe: Probe, path: string): Promise<void> {
	const answer = await probe.get(`${path}run_test/`);
	if (answer.status < 200 || answer.status > 299) throw unexpected(answer, 200);
	if (!isRecord(answer.json) || typeof answer.json['result'] !== 'boolean')
		probe.deviate('the answer to run_test has no result');
}

async function deactivate(probe: Probe, path: string): Promise<void> {
	const after = await probe.object({ method: 'PATCH', path, body: { is_active: false } }, 200);
	probe.values('fault', after, { is_active: false }, 'deactivated');
	const list = await probe.object({ method: 'GET', path: path.slice(0, path.indexOf('subscribers/')) }, 200);
	const counts = { active_subscribers_count: 0, inactive_subscribers_count: 1, overall_subscribers_count: 1 };
	probe.values('fault', list, counts, 'the list of it');
}

/**
 * In their order: each change but the first needs the record of the first. Existing records are read after the creation,
 * so that a new deployment has one.
 */
function checksOf(of: Resource): Check[] {
	const { group, one, shape, mark } = of;
	let made: { path: string; record: Json } | null = null;
	const look = (verb: string, title: string, run: (probe: Probe, path: string) => Promise<unknown>) =>
		check('read', `${group}.${verb}`, title, async (probe) => run(probe, await of.existing(probe)));
	const change = (
		verb: string,
		title: string,
		run: (probe: Probe, path: string, record: Json) => Promise<unknown>,
	) =>
		check('change', `${group}.${verb}`, title, async (probe) => {
			if (made === null) throw new Skipped(`${group}.create made nothing to try it with`);
			return run(probe, made.path, made.record);
		});
	const read = (probe: Probe, path: string) => probe.object({ method: 'GET', path }, 200);
	/** Keys of the document only: further keys of a deployment may change freely. */
	const known = (record: Json): Json =>
		Object.fromEntries(Object.entries(record).filter(([key]) => Object.hasOwn(shape.keys, key)));
	const expectStored = async (probe: Probe, path: string, record: Json) => {
		const stored = await read(probe, path);
		probe.records(shape, [stored], one);
		probe.values('fault', stored, known(record), 'read again');
	};
	const written = async (probe: Probe, ask: Ask, expected: Json, when: string) => {
		const after = await probe.object(ask, 200);
		probe.records(shape, [after], one);
		probe.values('fault', after, expected, when);
		await expectStored(probe, ask.path, after);
		made = { path: ask.path, record: known(after) };
		return after;
	};
	return [
		check('change', `${group}.create`, `a ${one} is created`, async (probe) => {
			const collection = await of.own(probe);
			const { body, mayRefuse } = of;
			const answer = await probe.call({ method: 'POST', path: collection, body });
			const complaints = answer.status === 400 && isRecord(answer.json) ? answer.json : {};
			if (mayRefuse !== undefined && Object.hasOwn(complaints, mayRefuse.key))
				throw new Skipped(mayRefuse.why);
			const id = createdId(answer);
			if (answer.status !== 201 || id === null) throw unexpected(answer, 201);
			const record = probe.objectOf(answer);
			probe.records(shape, [record], `new ${one}`);
			probe.values('fault', record, { ...body, ...of.defaults }, 'created');
			// The next checks change and delete the record of that id: it must be the new one.
			const path = `${collection}${id}/`;
			const stored = await read(probe, path);
			if (!isSame(stored[mark], body[mark]))
				throw new Broken(`${one} ${id}, said to be the new one, has the ${mark} ${shown(stored[mark])}`);
			made = { path, record };
		}),
		look('page', 'the collection has the documented shape', async (probe, path) => {
			const { count, next, previous, results } = await probe.page(path);
			if (previous !== null) probe.fault(`the first page has a previous one: ${shown(previous)}`);
			if (count !== null && next === null && count !== results.length)
				probe.fault(`count is ${count}, but the only page has ${results.length}`);
			probe.records(shape, results, one);
			return `${results.length} of ${count ?? 'an unknown number'}`;
		}),
		look('paging', 'its pages follow one another', (probe, path) => probe.paging(path)),
		look('get', `one ${one} is read as the collection shows it`, async (probe, path) => {
			const [first] = (await probe.page(path)).results;
			if (first === undefined) throw new Skipped(`the collection has no ${one}`);
			const record = await read(probe, `${path}${String(first['id'])}/`);
			probe.records(shape, [record], one);
			const { id, [mark]: name } = first;
			probe.values('fault', record, { id, [mark]: name }, 'by itself');
		}),
		look('unknown', `a ${one} that is not there is a 404`, async (probe, path) =>
			probe.refusal(await probe.get(`${path}${unknownId}/`), `an unknown ${one}`, 404),
		),
		...(of.looks ?? []).map(({ verb, title, run }) => look(verb, title, run)),
		change('read', `the new ${one} is read as it was answered`, expectStored),
		change('listed', `the new ${one} is in the collection`, async (probe, path, { id }) => {
			for await (const { results } of probe.pages(collectionOf(path)))
				if (results.some((record) => record['id'] === id)) return;
			throw new Broken(`the collection has no ${one} ${shown(id)}`);
		}),
		change('patch', 'PATCH changes what it names and nothing else', async (probe, path, record) => {
			const ask = { method: 'PATCH', path, body: of.patch } as const;
			await written(probe, ask, { ...known(record), ...of.patch }, 'after PATCH');
		}),
		change('replace', 'PUT changes all it names', async (probe, path, { id, date_created }) => {
			const ask = { method: 'PUT', path, body: of.replace } as const;
			const after = await written(probe, ask, { id, date_created, ...of.replace }, 'after PUT');
			probe.values('deviate', after, of.decided ?? {}, 'after a PUT that omits it');
		}),
		...of.refusals.map(({ verb, what, body, key, isOpen }) =>
			change(verb, `${what} is refused`, async (probe, path) => {
				const answer = await probe.call({ method: 'POST', path: collectionOf(path), body });
				if (isOpen && answer.status < 300) probe.deviate(`${what} is accepted`);
				else probe.refusal(answer, what, 400);
				if (answer.status === 400 && isRecord(answer.json) && !Object.hasOwn(answer.json, key))
					probe.deviate(`the 400 for ${what} does not name ${key}`);
			}),
		),
		...(of.changes ?? []).map(({ verb, title, run }) => change(verb, title, run)),
		change('delete', `the ${one} is deleted and then gone`, async (probe, path) => {
			await probe.expect({ method: 'DELETE', path }, 204);
			const after = await probe.get(path);
			if (after.status === 200) throw new Broken(`the ${one} is still there after its deletion`);
			probe.refusal(after, `reading a deleted ${one}`, 404);
		}),
	];
}

function collectionOf(path: string): string {
	return path.slice(0, path.lastIndexOf('/', path.length - 2) + 1);
}

function createdId({ status, json }: Answer): number | null {
	const id = isRecord(json) ? json['id'] : null;
	return status < 300 && typeof id === 'number' && Number.isSafeInteger(id) ? id : null;
}

const subscribersPath = (list: number) => `${listsPath}${list}/subscribers/`;

async function someSubscribers(probe: Probe): Promise<string> {
	const { results } = await probe.page(listsPath);
	const list = results.find((one) => Number(one['overall_subscribers_count']) > 0) ?? results[0];
	const id = list?.['id'];
	if (typeof id !== 'number') throw new Skipped('the deployment has no list');
	return subscribersPath(id);
}

/** Every row of an answer must match its filter, and a filter for a known address must find it. */
async function judgeFilters(probe: Probe, list: string): Promise<void> {
	const email = (await probe.page(list)).results[0]?.['email'];
	if (typeof email !== 'string') throw new Skipped('the list has no subscribers');
	const part = email.slice(0, Math.max(1, email.indexOf('@')));
	const filters = [
		{ key: 'email__exact', value: email, finds: true, isMatch: (row: Json) => isEqual(row['email'], email) },
		{
			...{ key: 'email__icontains', value: part, finds: true },
			isMatch: (row: Json) => String(row['email']).toLowerCase().includes(part.toLowerCase()),
		},
		{ key: 'is_active', value: 'True', finds: false, isMatch: (row: Json) => row['is_active'] === true },
		{ key: 'is_active', value: 'False', finds: false, isMatch: (row: Json) => row['is_active'] === false },
	];
	for (const { key, value, finds, isMatch } of filters) {
		const { results } = await probe.page(withQuery(list, { [key]: value }));
		const wrong = results.find((row) => !isMatch(row));
		// The fault names the id, because an address does not belong in a build log.
		if (wrong !== undefined)
			probe.fault(`${key} answers subscriber ${shown(wrong['id'])}, which does not match`);
		if (finds && results.length === 0) probe.fault(`${key} of an existing address finds no subscriber`);
	}
}

function isEqual(one: unknown, other: string): boolean {
	return String(one).toLowerCase() === other.toLowerCase();
}
