import { isRecord } from '../../api/json.js';
import { Field, List, Subscriber, Webhook } from '../../api/records.js';
import { type Check, check, type Group } from './model.js';
import type { Ask, Json, Probe, Shapes } from './probe.js';
import { Broken, createdId, isSame, pageNumber, Skipped, shown, unexpected, withQuery } from './probe.js';
import type { RunNames } from './records.js';

export const listsPath = '/sub/lists/';
const subscribersPath = (list: number) => `${listsPath}${list}/subscribers/`;
/** An id that no deployment has. It fits in 32 bits, because a service may refuse larger ids for their size. */
const unknownId = 2_147_483_647;

type Change = (probe: Probe, path: string, record: Json) => Promise<unknown>;

interface Resource {
	group: Group;
	one: string;
	shape: Shapes;
	/** The key that holds the run's name. The checks change only a record with this name. */
	mark: string;
	/** The path of the collection. Subscribers are read from an existing list, but created in a new one. */
	at: string | { existing(probe: Probe): Promise<string>; own(probe: Probe): Promise<string> };
	body: Json;
	defaults?: Json;
	patch: Json;
	replace: Json;
	/** The values after a PUT without these keys. The service document leaves these values open (api-decisions 11). */
	decided?: Json;
	mayRefuse?: { key: string; why: string };
	further?: readonly Check[];
	changes?: Readonly<Record<string, readonly [title: string, run: Change]>>;
	/** `open`: the service document does not require the refusal, so accepting the body is only a deviation. */
	refusals: readonly (readonly [verb: string, what: string, key: string, body: Json, isOpen?: 'open'])[];
}

/** `callsOut` allows checks that make the service call a host outside the deployment. */
export function resourceChecks(names: RunNames, { callsOut }: { callsOut: boolean }): Check[] {
	const { list, field, webhook, email, id } = names;
	const email_reason = 'a check of this deployment';
	const replaced = { email: `replaced-smoke-1.${email}` };
	const secondField = { variable: `${field}_replaced`, name: 'Smoke, replaced' };
	const unknownMeta = { email: `smoke-99.${email}`, meta: `{"${field}_none": "x"}` };
	const url = `${webhook}-refused`;
	const resources: readonly Resource[] = [
		{
			...{ group: 'lists', one: 'list', shape: List, mark: 'name', at: listsPath },
			body: { name: list, email_reason },
			defaults: { active_subscribers_count: 0, inactive_subscribers_count: 0, overall_subscribers_count: 0 },
			patch: { name: `${list}-patched` },
			replace: { name: `${list}-replaced`, email_reason: 'a check, replaced' },
			refusals: [
				['requires-reason', 'a list without email_reason', 'email_reason', { name: `${list}-refused` }],
			],
		},
		{
			...{ group: 'subscribers', one: 'subscriber', shape: Subscriber, mark: 'email' },
			at: {
				existing: someSubscribers,
				own: (probe) => ownSubscribers(probe, { name: `${list}-subscribers`, email_reason }),
			},
			body: { email: `smoke-1.${email}`, name: 'Smoke One' },
			defaults: { is_active: true, disable_reason: null, is_email_verified: false, source: 'API', meta: {} },
			patch: { email: `patched-smoke-1.${email}` },
			replace: { ...replaced, name: 'Smoke Replaced', is_active: false },
			further: [
				check('read', 'subscribers.filters', 'filters by address and state select subscribers', judgeFilters),
				check('read', 'subscribers.unknown-list', 'an unknown list gets a 404', async (probe) =>
					probe.refusal(await probe.get(subscribersPath(unknownId)), 'an unknown list', 404),
				),
			],
			changes: {
				deactivate: ['PATCH deactivates a subscriber, and the counts of the list show it', judgeDeactivation],
				'own-filters': [
					'the filters find the new subscriber and no other',
					(probe, path) => judgeOwnFilters(probe, path, `smoke-2.${email}`),
				],
			},
			refusals: [
				['requires-email', 'a subscriber without an email address', 'email', { name: 'x' }],
				['malformed', 'a malformed address', 'email', { email: 'smoke' }, 'open'],
				['unique', 'the same address twice in a list', 'email', replaced, 'open'],
				['unknown-meta', 'a meta key that is not a field', 'meta', unknownMeta, 'open'],
			],
		},
		{
			...{ group: 'fields', one: 'field', shape: Field, mark: 'variable', at: '/sub/fields/' },
			body: { variable: field, name: 'Smoke' },
			patch: { variable: `${field}_patched` },
			replace: secondField,
			refusals: [
				['requires-name', 'a field without a name', 'name', { variable: `${field}_refused` }],
				['unique', 'a second field with the same variable', 'variable', secondField, 'open'],
			],
		},
		{
			...{ group: 'webhooks', one: 'webhook', shape: Webhook, mark: 'url', at: '/webhooks/' },
			body: { url: webhook, type: 'SOFTBOUNCED', is_auth_enabled: true, login: 'smoke', password: id },
			patch: { url: `${webhook}-patched` },
			replace: { url: `${webhook}-replaced`, type: 'HARDBOUNCED' },
			decided: { is_auth_enabled: false, login: '', password: '' },
			// An existing host must not receive events, so the name does not resolve (`.invalid`, RFC 2606).
			mayRefuse: { key: 'url', why: 'the service refuses a URL whose name does not resolve' },
			changes: callsOut ? { test: ['the service answers run_test', judgeRunTest] } : {},
			refusals: [
				['requires-type', 'a webhook without a type', 'type', { url }],
				['known-type', 'a webhook of an unknown type', 'type', { url, type: 'SMOKED' }],
			],
		},
	];
	return resources.flatMap(checksOf);
}

/** The first check creates a record. All other changes need this record. In a new deployment, the reads need it too. */
function checksOf({ group, one, shape, mark, at, ...of }: Resource): Check[] {
	const { existing, own } = typeof at === 'string' ? { existing: async () => at, own: async () => at } : at;
	let made: { path: string; record: Json } | null = null;
	const change = (verb: string, title: string, run: Change) =>
		check('change', `${group}.${verb}`, title, async (probe) => {
			if (made === null) throw new Skipped(`${group}.create failed`);
			return run(probe, made.path, made.record);
		});
	const read = (verb: string, title: string, run: (probe: Probe, collection: string) => Promise<unknown>) =>
		check('read', `${group}.${verb}`, title, async (probe) => run(probe, await existing(probe)));
	/** Omits keys that the service document lacks, because the service may change their values. */
	const known = (record: Json): Json =>
		Object.fromEntries(Object.entries(record).filter(([key]) => Object.hasOwn(shape.keys, key)));
	const judgeRead = async (probe: Probe, path: string, expected: Json, when: string) => {
		const record = await probe.object(path);
		probe.records(shape, [record], one);
		probe.values('fault', record, expected, when);
	};
	const written = async (probe: Probe, ask: Ask, expected: Json) => {
		const after = await probe.object(ask.path, ask);
		probe.records(shape, [after], one);
		probe.values('fault', after, expected, `after ${ask.method}`);
		probe.values('fault', await probe.object(ask.path), known(after), 'read again');
		made = { path: ask.path, record: known(after) };
		return after;
	};
	return [
		check('change', `${group}.create`, `a ${one} is created`, async (probe) => {
			const collection = await own(probe);
			const answer = await probe.post(collection, of.body);
			const complaints = answer.status === 400 && isRecord(answer.json) ? answer.json : {};
			if (of.mayRefuse !== undefined && Object.hasOwn(complaints, of.mayRefuse.key))
				throw new Skipped(of.mayRefuse.why);
			const id = createdId(answer);
			if (answer.status !== 201 || id === null) throw unexpected(answer, 201);
			const record = probe.objectOf(answer);
			probe.records(shape, [record], `new ${one}`);
			probe.values('fault', record, { ...of.body, ...of.defaults }, 'created');
			// Read the record by the id from the answer: the next checks change and delete the record with this id.
			const path = `${collection}${id}/`;
			const stored = await probe.object(path);
			if (!isSame(stored[mark], of.body[mark]))
				throw new Broken(
					`the service says that ${one} ${id} is new, but its ${mark} is ${shown(stored[mark])}`,
				);
			made = { path, record };
		}),
		read('page', 'the collection has the documented shape', async (probe, collection) => {
			const { count, next, previous, results } = await probe.page(collection);
			if (previous !== null) probe.fault(`the first page links to a previous page: ${shown(previous)}`);
			if (count !== null && next === null && count !== results.length)
				probe.fault(`count is ${count}, but the only page has ${results.length}`);
			probe.records(shape, results, one);
			return `${results.length} of ${count ?? 'an unknown number'}`;
		}),
		read('paging', 'the links lead to the next and the previous page', judgePaging),
		read('get', `GET of one ${one} returns the same values as the collection`, async (probe, collection) => {
			const [first] = (await probe.page(collection)).results;
			if (first === undefined) throw new Skipped(`the collection has no ${one}`);
			const { id, [mark]: name } = first;
			await judgeRead(probe, `${collection}${String(id)}/`, { id, [mark]: name }, 'by itself');
		}),
		read('unknown', `an unknown ${one} gets a 404`, async (probe, collection) =>
			probe.refusal(await probe.get(`${collection}${unknownId}/`), `an unknown ${one}`, 404),
		),
		...(of.further ?? []),
		change('read', `the new ${one} has the values it was created with`, (probe, path, record) =>
			judgeRead(probe, path, known(record), 'read again'),
		),
		change('listed', `the new ${one} is in the collection`, async (probe, path, { id }) => {
			for await (const { results } of probe.pages(collectionOf(path)))
				if (results.some((record) => record['id'] === id)) return;
			throw new Broken(`the collection has no ${one} ${shown(id)}`);
		}),
		change('patch', 'PATCH changes only the keys in its body', (probe, path, record) =>
			written(probe, { method: 'PATCH', path, body: of.patch }, { ...known(record), ...of.patch }),
		),
		change('replace', 'PUT changes all keys in its body', async (probe, path, { id, date_created }) => {
			const ask = { method: 'PUT', path, body: of.replace } as const;
			const after = await written(probe, ask, { id, date_created, ...of.replace });
			probe.values('deviate', after, of.decided ?? {}, 'after a PUT that omits it');
		}),
		...of.refusals.map(([verb, what, key, body, isOpen]) =>
			change(verb, `${what} is refused`, async (probe, path) => {
				const answer = await probe.post(collectionOf(path), body);
				if (isOpen && answer.status < 300) probe.deviate(`${what} is accepted`);
				else probe.refusal(answer, what, 400);
				if (answer.status === 400 && isRecord(answer.json) && !Object.hasOwn(answer.json, key))
					probe.deviate(`the 400 for ${what} does not name ${key}`);
			}),
		),
		...Object.entries(of.changes ?? {}).map(([verb, [title, run]]) => change(verb, title, run)),
		change('delete', `the ${one} is deleted and then gone`, async (probe, path) => {
			await probe.expect({ method: 'DELETE', path }, 204);
			const after = await probe.get(path);
			if (after.status === 200) throw new Broken(`the ${one} is still there after its deletion`);
			probe.refusal(after, `reading a deleted ${one}`, 404);
		}),
	];
}

async function judgePaging(probe: Probe, path: string): Promise<string> {
	const plain = await probe.page(path);
	if (plain.next === null && plain.results.length < 2) throw new Skipped('one page holds all records');
	const ids: number[] = [];
	let number = 0;
	for await (const page of probe.pages(plain.next === null ? withQuery(path, { page_size: 1 }) : path)) {
		number += 1;
		const [back, onward] = [page.previous, page.next].map((link) => link && pageNumber(link));
		if (number > 1 && back !== number - 1)
			probe.fault(`page ${number}: the previous page is ${back ?? 'null'}, not ${number - 1}`);
		if (onward !== null && onward !== number + 1)
			probe.fault(`the next link of page ${number} leads to page ${onward}`);
		ids.push(...page.results.map(({ id }) => Number(id)));
		if (number === 3) break;
	}
	if (number === 1) throw new Skipped('one page holds all records');
	const again = ids.find((id, at) => ids.indexOf(id) !== at);
	if (again !== undefined) probe.fault(`id ${again} is on two pages`);
	else if (ids.some((id, at) => id < (ids[at - 1] ?? 0))) probe.deviate('ids are not ascending');
	return `${Math.ceil(ids.length / number)} a page`;
}

function collectionOf(path: string): string {
	return path.slice(0, path.lastIndexOf('/', path.length - 2) + 1);
}

/** Deleting the list deletes its subscribers too. */
async function ownSubscribers(probe: Probe, body: { name: string; email_reason: string }): Promise<string> {
	const answer = await probe.post(listsPath, body);
	const id = createdId(answer);
	if (id === null) throw unexpected(answer, 201);
	const { json } = await probe.get(`${listsPath}${id}/`);
	if (isRecord(json) && json['name'] === body.name) return subscribersPath(id);
	throw new Broken(`the service says that list ${id} is new, but it has a different name`);
}

async function someSubscribers(probe: Probe): Promise<string> {
	const { results } = await probe.page(listsPath);
	const list = results.find((one) => Number(one['overall_subscribers_count']) > 0) ?? results[0];
	const id = list?.['id'];
	if (typeof id !== 'number') throw new Skipped('the service has no list');
	return subscribersPath(id);
}

async function judgeFilters(probe: Probe): Promise<void> {
	const list = await someSubscribers(probe);
	const email = (await probe.page(list)).results[0]?.['email'];
	if (typeof email !== 'string') throw new Skipped('the list has no subscribers');
	const part = email.slice(0, Math.max(1, email.indexOf('@'))).toLowerCase();
	const emailOf = (row: Json) => String(row['email']).toLowerCase();
	const filters: [key: string, value: string, isMatch: (row: Json) => boolean][] = [
		['email__exact', email, (row) => emailOf(row) === email.toLowerCase()],
		['email__icontains', part, (row) => emailOf(row).includes(part)],
		['is_active', 'True', (row) => row['is_active'] === true],
		['is_active', 'False', (row) => row['is_active'] === false],
	];
	for (const [key, value, isMatch] of filters) {
		const { results } = await probe.page(withQuery(list, { [key]: value }));
		const wrong = results.find((row) => !isMatch(row));
		// Name the id, because an address does not belong in a build log.
		if (wrong !== undefined)
			probe.fault(`the filter ${key} returns subscriber ${shown(wrong['id'])}, which does not match`);
		if (key !== 'is_active' && results.length === 0)
			probe.fault(`the filter ${key} with an existing address finds no subscriber`);
	}
}

async function judgeDeactivation(probe: Probe, path: string): Promise<void> {
	const after = await probe.object(path, { method: 'PATCH', body: { is_active: false } });
	probe.values('fault', after, { is_active: false }, 'deactivated');
	const list = await probe.object(path.slice(0, path.indexOf('subscribers/')));
	const counts = { active_subscribers_count: 0, inactive_subscribers_count: 1, overall_subscribers_count: 1 };
	probe.values('fault', list, counts, 'its list');
}

/** Adds an active subscriber. Filters for the inactive subscriber at `path` must find only that one. */
async function judgeOwnFilters(probe: Probe, path: string, second: string): Promise<void> {
	const list = collectionOf(path);
	const { email } = await probe.object(path);
	await probe.expect({ method: 'POST', path: list, body: { email: second } }, 201);
	for (const query of [{ email__exact: String(email) }, { is_active: 'False' }]) {
		const found = (await probe.page(withQuery(list, query))).results.map((row) => row['email']);
		if (!isSame(found, [email])) probe.fault(`${shown(query)} finds ${shown(found)}`);
	}
}

/** Any 2xx passes, because the service document does not specify the answer of run_test (api-decisions 33). */
async function judgeRunTest(probe: Probe, path: string): Promise<void> {
	const answer = await probe.get(`${path}run_test/`);
	if (answer.status < 200 || answer.status > 299) throw unexpected(answer, 200);
	if (!isRecord(answer.json) || typeof answer.json['result'] !== 'boolean')
		probe.deviate('the answer to run_test has no result');
}
