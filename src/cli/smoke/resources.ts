/**
 * Checks of the collections of the service document: lists, subscribers, fields and webhooks. What is there is only read;
 * what a run makes itself (`--full`) is created, read, changed, refused and deleted.
 */
import { isRecord } from '../../api/json.js';
import { Field, List, Subscriber, Webhook } from '../../api/records.js';
import type { CommandContext } from '../frame/context.js';
import type { Answer, Ask } from './caller.js';
import type { Check, Group, Need } from './model.js';
import {
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
import { type CreatedRecords, createdId, type Kind, type RunNames } from './records.js';

type Run = (probe: Probe, path: string) => Promise<string | undefined>;
type Path = (probe: Probe) => Promise<string>;

export const listsPath = '/sub/lists/';
const subscribersPath = (list: number) => `/sub/lists/${list}/subscribers/`;

/** No deployment has so many records; it fits 32 bits, as a larger id may be refused for its size. */
const unknownId = 2_147_483_647;

export interface Given {
	readonly names: RunNames;
	readonly records: CreatedRecords;
	readonly hasToken: boolean;
	/** `--send-to` and `--from`. */
	readonly mail: { to: string; from: string } | null;
	readonly connection: CommandContext['connection'];
	readonly signal: AbortSignal;
}

/** What the checks of a run share. Its list and its field are made by the first check that needs them. */
export class Context {
	readonly given: Given;
	#list: Promise<number | Broken> | null = null;
	#isTold = false;
	#variable: Promise<string | null> | null = null;

	constructor(given: Given) {
		this.given = given;
	}

	get names(): RunNames {
		return this.given.names;
	}

	get records(): CreatedRecords {
		return this.given.records;
	}

	/** A list of the run for its subscribers. Where it cannot be made, the first check fails, and others are skipped. */
	async list(probe: Probe): Promise<number> {
		this.#list ??= this.#makeList(probe);
		const made = await this.#list;
		if (typeof made === 'number') return made;
		if (this.#isTold) throw new Skipped('no list could be made to try them in');
		this.#isTold = true;
		throw made;
	}

	async #makeList(probe: Probe): Promise<number | Broken> {
		const name = `${this.names.list}-subscribers`;
		const body = { name, email_reason: 'a check of this deployment' };
		const answer = await this.records.create(probe, 'list', { method: 'POST', path: listsPath, body });
		const id = createdId(answer);
		if (id === null) return new Broken(`no list could be made: ${unexpected(answer, 201)}`);
		// Subscribers are put only into a list with the run's name.
		const { json } = await probe.get(`${listsPath}${id}/`);
		if (isRecord(json) && json['name'] === name) return id;
		return new Broken(`no list could be made: list ${id}, said to be the new one, has another name`);
	}

	/** The variable of a field of the run; null where the field cannot be made. */
	variable(probe: Probe): Promise<string | null> {
		this.#variable ??= this.#makeField(probe);
		return this.#variable;
	}

	async #makeField(probe: Probe): Promise<string | null> {
		const variable = `${this.names.field}_meta`;
		const ask = { method: 'POST', path: '/sub/fields/', body: { variable, name: 'Smoke' } } as const;
		return createdId(await this.records.create(probe, 'field', ask)) === null ? null : variable;
	}
}

interface Collection {
	group: Group;
	one: string;
	shape: Shapes;
	/** The path of the collection that is there; throws `Skipped` where there is none. */
	existing: Path;
}

interface Resource extends Collection {
	/** The key that holds the run's name: a record with another name belongs to others and is not changed. */
	mark: string;
	path: Path;
	/** Its kind among the records that the clean-up deletes; null: it goes with its list. */
	kind: Kind | null;
	create(probe: Probe): Promise<{ body: Json; expected: Json }>;
	patch: Json;
	/** `decided`: values the document leaves open; omitted keys return to their defaults (api-decisions 11). */
	replace: { body: Json; expected: Json; decided?: Json };
	refusals: readonly Refusal[];
	/** A key whose value a deployment is free to refuse; `why` is then the reason of the skip. */
	mayRefuse?: { key: string; why: string };
}

interface Refusal {
	id: string;
	what: string;
	body: Json;
	key: string;
	/** The document leaves the refusal open: an acceptance is a deviation. */
	isOpen?: true;
}

class Made {
	readonly #maker: string;
	#record: Json | null = null;

	constructor(maker: string) {
		this.#maker = maker;
	}

	set record(record: Json) {
		this.#record = record;
	}

	get record(): Json {
		if (this.#record === null) throw new Skipped(`${this.#maker} made nothing to try it with`);
		return this.#record;
	}
}

export function listChecks({ names, records }: Context): Check[] {
	const body = { name: names.list, email_reason: 'a check of this deployment' };
	const replaced = { name: `${names.list}-replaced`, email_reason: 'a check, replaced' };
	const none = { active_subscribers_count: 0, inactive_subscribers_count: 0, overall_subscribers_count: 0 };
	const path = async () => listsPath;
	return new ResourceChecks(
		{
			...{ group: 'lists', one: 'list', shape: List, existing: path, path, mark: 'name', kind: 'list' },
			create: async () => ({ body, expected: { ...body, ...none } }),
			patch: { name: `${names.list}-patched` },
			replace: { body: replaced, expected: { ...replaced, ...none } },
			refusals: [
				{
					id: 'requires-reason',
					what: 'a list without email_reason',
					body: { name: `${names.list}-refused` },
					key: 'email_reason',
				},
			],
		},
		records,
	).all();
}

export function fieldChecks({ names, records }: Context): Check[] {
	const body = { variable: names.field, name: 'Smoke' };
	const replaced = { variable: `${names.field}_replaced`, name: 'Smoke, replaced' };
	const path = async () => '/sub/fields/';
	return new ResourceChecks(
		{
			...{
				group: 'fields',
				one: 'field',
				shape: Field,
				existing: path,
				path,
				mark: 'variable',
				kind: 'field',
			},
			create: async () => ({ body, expected: body }),
			patch: { variable: `${names.field}_patched` },
			replace: { body: replaced, expected: replaced },
			refusals: [
				{
					id: 'requires-name',
					what: 'a field without a name',
					body: { variable: `${names.field}_refused` },
					key: 'name',
				},
				// The document does not make variables unique.
				{
					...{ id: 'unique', what: 'a second field of the same variable', isOpen: true },
					...{ body: replaced, key: 'variable' },
				},
			],
		},
		records,
	).all();
}

/**
 * The target is a name that never resolves (RFC 2606), so that an event of these seconds reaches no stranger; run_test is
 * called only where `--send-to` allows calls outside.
 */
export function webhookChecks({ names, records }: Context): Check[] {
	const secret = { login: 'smoke', password: names.id };
	const body = { url: names.webhook, type: 'SOFTBOUNCED', is_auth_enabled: true, ...secret };
	const replaced = { url: `${names.webhook}-replaced`, type: 'HARDBOUNCED' };
	const refused = { url: `${names.webhook}-refused` };
	const path = async () => '/webhooks/';
	const checks = new ResourceChecks(
		{
			...{
				group: 'webhooks',
				one: 'webhook',
				shape: Webhook,
				existing: path,
				path,
				mark: 'url',
				kind: 'webhook',
			},
			create: async () => ({ body, expected: body }),
			patch: { url: `${names.webhook}-patched` },
			replace: {
				body: replaced,
				expected: replaced,
				decided: { is_auth_enabled: false, login: '', password: '' },
			},
			// A name that resolves belongs to a stranger, who must not get events.
			mayRefuse: { key: 'url', why: 'the deployment refuses a URL whose name does not resolve' },
			refusals: [
				{ id: 'requires-type', what: 'a webhook without a type', body: refused, key: 'type' },
				{
					id: 'known-type',
					what: 'a webhook of an unknown type',
					body: { ...refused, type: 'SMOKED' },
					key: 'type',
				},
			],
		},
		records,
	);
	// The document shows neither status nor body of run_test: any 2xx will do (api-decisions 33).
	const test = checks.check('test', 'run_test is answered', 'call', async (probe) => {
		const answer = await probe.get(`${await checks.onePath(probe)}run_test/`);
		if (answer.status < 200 || answer.status > 299) throw new Broken(unexpected(answer, 200));
		if (!isRecord(answer.json) || typeof answer.json['result'] !== 'boolean')
			probe.deviate('the answer to run_test has no result');
		return undefined;
	});
	return checks.all([], [test]);
}

/** One more than a page of ten, which is not uncommon. */
const manySubscribers = 11;

/** Subscribers are made in a list of the run and are deleted with it. */
export function subscriberChecks(context: Context): Check[] {
	const { names, records } = context;
	const defaults = { is_active: true, disable_reason: null, is_email_verified: false, source: 'API' };
	const path = async (probe: Probe) => subscribersPath(await context.list(probe));
	let found: Promise<string> | null = null;
	const existing = (probe: Probe) => {
		found ??= findSubscribers(probe);
		return found;
	};
	const replaced = { email: `replaced-${names.email(1)}`, name: 'Smoke Replaced' };
	const checks = new ResourceChecks(
		{
			...{
				group: 'subscribers',
				one: 'subscriber',
				shape: Subscriber,
				existing,
				path,
				mark: 'email',
				kind: null,
			},
			create: async (probe) => {
				const variable = await context.variable(probe);
				const meta = variable === null ? {} : { [variable]: 'Oslo' };
				const named = { email: names.email(1), name: 'Smoke One' };
				// The document's form: a string that holds JSON.
				const body = { ...named, ...(variable !== null && { meta: JSON.stringify(meta) }) };
				const list_id = await context.list(probe);
				return { body, expected: { ...named, ...defaults, meta, list_id } };
			},
			patch: { email: `patched-${names.email(1)}` },
			replace: { body: replaced, expected: { ...replaced, is_active: true }, decided: { meta: {} } },
			refusals: [
				{
					id: 'requires-email',
					what: 'a subscriber without an email',
					body: { name: 'x' },
					key: 'email',
				},
				{
					id: 'malformed',
					what: 'a malformed address',
					body: { email: 'smoke' },
					key: 'email',
					isOpen: true,
				},
				{
					...{ id: 'unique', what: 'the same address twice in a list', isOpen: true },
					...{ body: { email: replaced.email }, key: 'email' },
				},
				{
					...{ id: 'unknown-meta', what: 'a meta key that is no field', isOpen: true },
					...{ body: { email: names.email(99), meta: `{"${names.field}_none": "x"}` }, key: 'meta' },
				},
			],
		},
		records,
	);
	const unknownList: Check = {
		id: 'subscribers.unknown-list',
		title: 'a list that is not there has no subscribers: a 404',
		need: 'read',
		run: async (probe) => {
			probe.refusal(await probe.get(subscribersPath(unknownId)), 'an unknown list', 404);
			return undefined;
		},
	};
	const filters = checks.look('filters', 'email__exact, email__icontains and is_active choose', judgeFilters);
	const own = [
		checks.check('deactivate', 'PATCH deactivates, and the list counts it', 'change', async (probe, list) => {
			const { email } = checks.made.record;
			const one = await checks.onePath(probe);
			const after = await probe.object({ method: 'PATCH', path: one, body: { is_active: false } }, 200);
			probe.values('fault', after, { is_active: false, email }, 'deactivated');
			const listPath = list.replace(/subscribers\/$/, '');
			const counts = await probe.object({ method: 'GET', path: listPath }, 200);
			const [active, inactive, all] = ['active', 'inactive', 'overall'].map(
				(which) => counts[`${which}_subscribers_count`],
			);
			if (Number(active) + Number(inactive) !== Number(all) || Number(inactive) < 1)
				probe.fault(
					`the list counts ${shown(active)} active, ${shown(inactive)} inactive, ${shown(all)} in all`,
				);
			return undefined;
		}),
		checks.check(
			'own-filters',
			'the filters find the run’s own subscribers, and no others',
			'change',
			async (probe, list) => {
				const [two, three] = [names.email(2), names.email(3)];
				for (const body of [
					{ email: two, is_active: true },
					{ email: three, is_active: false },
				]) {
					const answer = await probe.call({ method: 'POST', path: list, body });
					if (answer.status !== 201) throw new Broken(`a second subscriber is answered ${answer.status}`);
				}
				await expectOnly(probe, list, { email__exact: two }, [two]);
				await expectOnly(probe, list, { email__icontains: 'smoke-3.' }, [three]);
				await expectOnly(probe, list, { is_active: 'True', email__icontains: 'smoke-' }, [two]);
				await expectOnly(probe, list, { is_active: 'False', email__icontains: 'smoke-3' }, [three]);
				await expectOnly(probe, list, { email__exact: names.email(77) }, []);
				return undefined;
			},
		),
		checks.check('pages', 'a list of several pages is read page by page', 'change', async (probe, list) => {
			const first = await probe.page(withQuery(list, { page_size: 1 }));
			// Where pages of one row are not to be had, a few more may take a second page.
			const missing = first.results.length === 1 ? 0 : manySubscribers - first.results.length;
			for (let at = 0; at < missing; at += 1) {
				const body = { email: names.email(10 + at) };
				await probe.expect({ method: 'POST', path: list, body }, 201);
			}
			return probe.paging(list);
		}),
	];
	return checks.all([unknownList, filters], own);
}

/** Of a list with subscribers if there is one, else of any. */
async function findSubscribers(probe: Probe): Promise<string> {
	const { results } = await probe.page(listsPath);
	const list = results.find((one) => Number(one['overall_subscribers_count']) > 0) ?? results[0];
	const id = list?.['id'];
	if (typeof id !== 'number') throw new Skipped('there is no list to look at');
	return subscribersPath(id);
}

/** Every row of an answer must match its filter. */
async function judgeFilters(probe: Probe, list: string): Promise<undefined> {
	const email = (await probe.page(list)).results[0]?.['email'];
	if (typeof email !== 'string') throw new Skipped('the list has no subscribers');
	const part = email.slice(0, Math.max(1, email.indexOf('@')));
	if ((await filtered(probe, list, { email__exact: email })).length === 0)
		probe.fault('email__exact of an existing address finds no subscriber');
	if ((await filtered(probe, list, { email__icontains: part })).length === 0)
		probe.fault('email__icontains of a part of an existing address finds no subscriber');
	// The document does not say that case is ignored; the name of the parameter does.
	if ((await filtered(probe, list, { email__icontains: part.toUpperCase() })).length === 0)
		probe.deviate('email__icontains looks at upper and lower case');
	await filtered(probe, list, { is_active: 'True' });
	await filtered(probe, list, { is_active: 'False' });
	await filtered(probe, list, { is_active: 'True', email__icontains: part });
}

type Query = Readonly<Record<string, string>>;

async function expectOnly(
	probe: Probe,
	path: string,
	query: Query,
	emails: readonly string[],
): Promise<void> {
	const rows = (await filtered(probe, path, query)).map(({ email }) => String(email));
	// The subscriber of the checks before is called `replaced-smoke-1.…`.
	const found = rows.filter((email) => email.startsWith('smoke-')).sort();
	if (found.join() === emails.join()) return;
	const words = Object.entries(query).map(([key, value]) => `${key}=${value}`);
	const said = (those: readonly string[]) => those.join(', ') || 'no subscriber';
	probe.fault(`${words.join('&')} finds ${said(found)}, not ${said(emails)}`);
}

async function filtered(probe: Probe, path: string, query: Query): Promise<readonly Json[]> {
	const { results } = await probe.page(withQuery(path, query));
	const { email__exact: exact, email__icontains: part, is_active: active } = query;
	const wrong = results.find((row) => {
		const email = String(row['email']).toLowerCase();
		return (
			(exact !== undefined && email !== exact.toLowerCase()) ||
			(part !== undefined && !email.includes(part.toLowerCase())) ||
			(active !== undefined && row['is_active'] !== (active === 'True'))
		);
	});
	// By its id: an address does not belong in a build log.
	if (wrong !== undefined)
		probe.fault(
			`${Object.keys(query).join(' with ')} answers subscriber ${shown(wrong['id'])}, which does not match`,
		);
	return results;
}

/** The most pages that are read to find a new record. */
const mostPages = 50;

class ResourceChecks {
	readonly made: Made;
	readonly #of: Resource;
	readonly #records: Context['records'];

	constructor(of: Resource, records: Context['records']) {
		this.#of = of;
		this.#records = records;
		this.made = new Made(`${of.group}.create`);
	}

	/** `run` gets the path of the collection in which records are made. */
	check(verb: string, title: string, need: Need, run: Run): Check {
		const { group, path } = this.#of;
		return { id: `${group}.${verb}`, title, need, run: async (probe) => run(probe, await path(probe)) };
	}

	look(verb: string, title: string, run: Run): Check {
		const { group, existing } = this.#of;
		const look = async (probe: Probe) => run(probe, await existing(probe));
		return { id: `${group}.${verb}`, title, need: 'read', run: look };
	}

	async onePath(probe: Probe, { id } = this.made.record): Promise<string> {
		return `${await this.#of.path(probe)}${String(id)}/`;
	}

	/**
	 * In their order: each change but the first needs the record of the first. What is there is read after the creation,
	 * so that a new deployment has a record; `looks` come then, and `changes` before the deletion.
	 */
	all(looks: readonly Check[] = [], changes: readonly Check[] = []): Check[] {
		const { one, refusals } = this.#of;
		const change = (verb: string, title: string, run: Run) => this.check(verb, title, 'change', run);
		return [
			change('create', `a ${one} is created`, (probe, path) => this.#create(probe, path)),
			...this.#looks(),
			...looks,
			change('read', `the new ${one} is read as it was answered`, (probe) =>
				this.#expectStored(probe, this.made.record),
			),
			change('listed', `the new ${one} is in the collection`, (probe, path) => this.#find(probe, path)),
			change('patch', 'PATCH changes what it names and nothing else', (probe) => this.#patch(probe)),
			change('replace', 'PUT changes all it names', (probe) => this.#replace(probe)),
			...refusals.map((refusal) =>
				change(refusal.id, `${refusal.what} is refused`, (probe, path) => this.#refuse(probe, path, refusal)),
			),
			...changes,
			change('delete', `the ${one} is deleted and then gone`, (probe) => this.#delete(probe)),
		];
	}

	#looks(): Check[] {
		const { one, shape } = this.#of;
		return [
			this.look('page', 'the collection has the documented shape', async (probe, path) => {
				const page = await probe.page(path);
				judgeFirstPage(probe, page);
				probe.records(shape, page.results, one);
				return `${page.results.length} of ${page.count ?? 'an unknown number'}`;
			}),
			this.look('paging', 'its pages follow one another', async (probe, path) => {
				const result = await probe.paging(path);
				const beyond = await probe.get(withQuery(path, { page: 1_000_000 }));
				if (beyond.status < 400) probe.deviate(`a page beyond the last is a ${beyond.status}, not a 404`);
				else probe.refusal(beyond, 'a page beyond the last', 404);
				return result;
			}),
			this.look('get', `one ${one} is read as the collection shows it`, async (probe, path) => {
				const [first] = (await probe.page(path)).results;
				if (first === undefined) throw new Skipped(`there is no ${one}`);
				const { id } = first;
				const record = await probe.object({ method: 'GET', path: `${path}${String(id)}/` }, 200);
				probe.records(shape, [record], one);
				if (record['id'] !== id) throw new Broken(`asked for ${shown(id)}, ${shown(record['id'])} came`);
				for (const key of ['name', 'email', 'variable', 'url', 'date_created'])
					if (!isSame(record[key], first[key]))
						probe.fault(`${key} is ${shown(record[key])} by itself, ${shown(first[key])} in the collection`);
				return undefined;
			}),
			this.look('unknown', `a ${one} that is not there is a 404`, async (probe, path) => {
				probe.refusal(await probe.get(`${path}${unknownId}/`), `an unknown ${one}`, 404);
				return undefined;
			}),
		];
	}

	#post(probe: Probe, ask: Ask): Promise<Answer> {
		const { kind } = this.#of;
		return kind === null ? probe.call(ask) : this.#records.create(probe, kind, ask);
	}

	async #create(probe: Probe, path: string): Promise<undefined> {
		const { one, mark, shape, mayRefuse } = this.#of;
		const { body, expected } = await this.#of.create(probe);
		const answer = await this.#post(probe, { method: 'POST', path, body });
		const complaints = answer.status === 400 && isRecord(answer.json) ? answer.json : {};
		if (mayRefuse !== undefined && Object.hasOwn(complaints, mayRefuse.key)) throw new Skipped(mayRefuse.why);
		if (answer.status !== 201) throw new Broken(unexpected(answer, 201));
		const record = probe.objectOf(answer);
		probe.records(shape, [record], `new ${one}`);
		probe.values('fault', record, expected, 'created');
		const id = createdId(answer);
		if (id === null) throw new Broken(`the new ${one} has no id`);
		// The next checks change and delete the record of that id: it must be the new one.
		const stored = await probe.object({ method: 'GET', path: await this.onePath(probe, record) }, 200);
		if (!isSame(stored[mark], body[mark]))
			throw new Broken(`${one} ${id}, said to be the new one, has the ${mark} ${shown(stored[mark])}`);
		this.made.record = record;
	}

	async #expectStored(probe: Probe, record: Json): Promise<undefined> {
		const stored = await probe.object({ method: 'GET', path: await this.onePath(probe, record) }, 200);
		probe.records(this.#of.shape, [stored], this.#of.one);
		probe.values('fault', stored, this.#known(record), 'read again');
	}

	/** Keys of the document only: further keys of a deployment may change freely. */
	#known(record: Json): Json {
		const { keys } = this.#of.shape;
		return Object.fromEntries(Object.entries(record).filter(([key]) => Object.hasOwn(keys, key)));
	}

	async #find(probe: Probe, path: string): Promise<string | undefined> {
		const { id } = this.made.record;
		const has = (results: readonly Json[]) => results.some((one) => one['id'] === id);
		const first = await probe.page(path);
		if (has(first.results)) return undefined;
		// Ids ascend, so the newest is on the last page; the walk is for deployments that sort otherwise.
		const last = Math.ceil((first.count ?? 0) / Math.max(1, first.results.length));
		if (last > 1 && has((await probe.page(withQuery(path, { page: last }))).results)) return undefined;
		let end: string | null = first.next;
		for await (const page of probe.pages(path, mostPages)) {
			if (has(page.results)) return undefined;
			end = page.next;
		}
		if (end !== null) throw new Skipped(`not on the first ${mostPages} pages nor on the last`);
		throw new Broken(`${this.#of.one} ${shown(id)} is on none of the pages`);
	}

	async #patch(probe: Probe): Promise<undefined> {
		const { patch: body, shape, one } = this.#of;
		const after = await probe.object({ method: 'PATCH', path: await this.onePath(probe), body }, 200);
		probe.records(shape, [after], one);
		const expected = { ...this.#known(this.made.record), ...body };
		probe.values('fault', after, expected, 'after PATCH');
		await this.#expectStored(probe, expected);
		this.made.record = expected;
	}

	async #replace(probe: Probe): Promise<undefined> {
		const { shape, one, replace } = this.#of;
		const { body, expected, decided = {} } = replace;
		const { id, date_created } = this.made.record;
		const after = await probe.object({ method: 'PUT', path: await this.onePath(probe), body }, 200);
		probe.records(shape, [after], one);
		probe.values('fault', after, { id, date_created, ...expected }, 'after PUT');
		probe.values('deviate', after, decided, 'after a PUT that omits it');
		await this.#expectStored(probe, after);
		this.made.record = after;
	}

	async #refuse(probe: Probe, path: string, { what, body, key, isOpen }: Refusal): Promise<undefined> {
		const answer = await this.#post(probe, { method: 'POST', path, body });
		if (answer.status < 300 && isOpen) return void probe.deviate(`${what} is accepted`);
		probe.refusal(answer, what, 400);
		if (!isRecord(answer.json) || !Object.hasOwn(answer.json, key))
			probe.deviate(`the refusal of ${what} does not name ${key}`);
	}

	async #delete(probe: Probe): Promise<undefined> {
		const { one } = this.#of;
		const path = await this.onePath(probe);
		const { text } = await probe.expect({ method: 'DELETE', path }, 204);
		if (text !== '') probe.deviate('the answer to DELETE has a body');
		const after = await probe.get(path);
		if (after.status === 200) throw new Broken(`the ${one} is still there after its deletion`);
		probe.refusal(after, `reading a deleted ${one}`, 404);
		const again = await probe.call({ method: 'DELETE', path });
		if (again.status < 300) probe.deviate(`deleting a ${one} twice is a ${again.status}, not a 404`);
		else probe.refusal(again, `deleting a ${one} twice`, 404);
	}
}

/** No previous page, and a count that fits its rows. */
function judgeFirstPage(
	probe: Probe,
	{ count, next, previous, results }: Awaited<ReturnType<Probe['page']>>,
): void {
	if (previous !== null) probe.fault(`the first page has a previous one: ${shown(previous)}`);
	if (count !== null && next === null && count !== results.length)
		probe.fault(`count is ${count}, but the only page has ${results.length}`);
	if (count !== null && next !== null && count <= results.length)
		probe.fault(`count is ${count}, but there is a page behind the first ${results.length}`);
	if (next !== null && results.length === 0) probe.fault('an empty page has a next one');
}
