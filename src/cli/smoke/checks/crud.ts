/** Create, read, find, change, refuse, delete: the same row of checks for every resource (`--full`). */
import { isRecord } from '../../../api/json.js';
import {
	expectObject,
	expectRecord,
	expectRefusal,
	expectStatus,
	expectValues,
	isSame,
	objectOf,
	unexpected,
} from '../assertions.js';
import type { Answer, Ask } from '../caller.js';
import { slot } from '../check-context.js';
import { Broken, type Check, type Group, type Probe, Skipped } from '../model.js';
import { readPage, walkPages, withQuery } from '../pages.js';
import { type Json, type Shape, shown } from '../shapes.js';

export interface Resource {
	group: Group;
	/** `list`, for the texts. */
	one: string;
	shape: Shape;
	/** The key that holds the run's name: a record with another name belongs to others and is not changed. */
	mark: string;
	/** The path of its collection. */
	path(probe: Probe): Promise<string>;
	/** POSTs by `CreatedRecords`, so that the clean-up knows the record. */
	post(probe: Probe, ask: Ask): Promise<Answer>;
	create(probe: Probe): Promise<Creation>;
	/** The body of the PATCH; every other key must stay. */
	patch: Json;
	replace: {
		body: Json;
		/** Documented values of the answer. */
		expected: Json;
		/** Values the document leaves open: omitted keys return to their defaults (api-decisions 11). */
		decided?: Json;
	};
	refusals: readonly Refusal[];
	/** A key whose value a deployment is free to refuse; `why` is then the reason of the skip. */
	mayRefuse?: { key: string; why: string };
}

export interface Creation {
	body: Json;
	/** Values the answer must have. */
	expected: Json;
}

/** A body the service is to refuse with 400, naming the key. */
export interface Refusal {
	/** The last part of the check's id. */
	id: string;
	/** Completes "… is accepted". */
	what: string;
	body: Json;
	key: string;
	/** The document demands the refusal; otherwise an acceptance is a deviation. */
	isDocumented: boolean;
}

/** The most pages that are read to find a new record. */
const maxPages = 50;

/**
 * In their order: each but the first needs the record of the first. `existing` read the collection before the deletion,
 * so that a new deployment has a record; `between` come before the deletion too.
 */
export function crudChecks(
	resource: Resource,
	existing: readonly Check[],
	between: (made: { get(): Json }) => Check[] = () => [],
): Check[] {
	const { group, one } = resource;
	const made = slot<Json>(`${group}.create`);
	const check = (verb: string, title: string, run: (probe: Probe) => Promise<string | undefined>): Check => ({
		id: `${group}.${verb}`,
		group,
		title,
		need: 'change',
		run,
	});
	return [
		check('create', `a ${one} is created`, async (probe) => {
			made.set(await create(probe, resource));
			return undefined;
		}),
		...existing,
		check('read', `the new ${one} is read as it was answered`, async (probe) => {
			await expectStored(probe, resource, made.get());
			return undefined;
		}),
		check('listed', `the new ${one} is in the collection`, (probe) => findIn(probe, resource, made.get())),
		check('patch', 'PATCH changes what it names and nothing else', async (probe) => {
			made.set(await patch(probe, resource, made.get()));
			return undefined;
		}),
		check('replace', 'PUT changes all it names', async (probe) => {
			made.set(await replace(probe, resource, made.get()));
			return undefined;
		}),
		...resource.refusals.map((refusal) =>
			check(refusal.id, `${refusal.what} is refused`, async (probe) => {
				await refuse(probe, resource, refusal);
				return undefined;
			}),
		),
		...between(made),
		check('delete', `the ${one} is deleted and then gone`, async (probe) => {
			await remove(probe, resource, made.get());
			return undefined;
		}),
	];
}

async function create(probe: Probe, resource: Resource): Promise<Json> {
	const path = await resource.path(probe);
	const { body, expected } = await resource.create(probe);
	const answer = await resource.post(probe, { method: 'POST', path, body });
	const { mayRefuse } = resource;
	const complaints = answer.status === 400 && isRecord(answer.json) ? answer.json : {};
	if (mayRefuse !== undefined && Object.hasOwn(complaints, mayRefuse.key)) throw new Skipped(mayRefuse.why);
	if (answer.status !== 201) throw new Broken(unexpected(answer, 201));
	const record = objectOf(probe, answer);
	expectRecord(probe, resource.shape, record, `new ${resource.one}`);
	expectValues(probe.fault, record, expected, 'created');
	if (typeof record['id'] !== 'number') throw new Broken(`the new ${resource.one} has no id`);
	await assertOurs(probe, resource, { id: record['id'], mark: body[resource.mark] });
	return record;
}

/** The record of that id is the new one: the next checks change and delete it. */
async function assertOurs(
	probe: Probe,
	resource: Resource,
	made: { id: number; mark: unknown },
): Promise<void> {
	const path = await onePath(probe, resource, made);
	const stored = await expectObject(probe, { method: 'GET', path }, 200);
	const { mark, one } = resource;
	if (!isSame(stored[mark], made.mark))
		throw new Broken(`${one} ${made.id}, said to be the new one, has the ${mark} ${shown(stored[mark])}`);
}

async function expectStored(probe: Probe, resource: Resource, record: Json): Promise<void> {
	const path = await onePath(probe, resource, record);
	const stored = await expectObject(probe, { method: 'GET', path }, 200);
	expectRecord(probe, resource.shape, stored, resource.one);
	expectValues(probe.fault, stored, known(resource, record), 'read again');
}

async function findIn(probe: Probe, resource: Resource, { id }: Json): Promise<string | undefined> {
	const path = await resource.path(probe);
	const has = (results: readonly Json[]) => results.some((one) => one['id'] === id);
	const first = await readPage(probe, path);
	if (has(first.results)) return undefined;
	// Ids ascend, so the newest is on the last page; the walk is for deployments that sort otherwise.
	const last = Math.ceil((first.count ?? 0) / Math.max(1, first.results.length));
	if (last > 1 && has((await readPage(probe, withQuery(path, { page: last }))).results)) return undefined;
	let end: string | null = first.next;
	for await (const page of walkPages(probe, path, maxPages)) {
		if (has(page.results)) return undefined;
		end = page.next;
	}
	if (end !== null) throw new Skipped(`not on the first ${maxPages} pages nor on the last`);
	throw new Broken(`${resource.one} ${shown(id)} is on none of the pages`);
}

async function patch(probe: Probe, resource: Resource, before: Json): Promise<Json> {
	const path = await onePath(probe, resource, before);
	const after = await expectObject(probe, { method: 'PATCH', path, body: resource.patch }, 200);
	expectRecord(probe, resource.shape, after, resource.one);
	const expected = { ...known(resource, before), ...resource.patch };
	expectValues(probe.fault, after, expected, 'after PATCH');
	await expectStored(probe, resource, expected);
	return expected;
}

async function replace(probe: Probe, resource: Resource, before: Json): Promise<Json> {
	const path = await onePath(probe, resource, before);
	const { body, expected, decided = {} } = resource.replace;
	const after = await expectObject(probe, { method: 'PUT', path, body }, 200);
	expectRecord(probe, resource.shape, after, resource.one);
	const kept = { id: before['id'], date_created: before['date_created'], ...expected };
	expectValues(probe.fault, after, kept, 'after PUT');
	expectValues(probe.deviate, after, decided, 'after a PUT that omits it');
	await expectStored(probe, resource, after);
	return after;
}

async function refuse(probe: Probe, resource: Resource, refusal: Refusal): Promise<void> {
	const path = await resource.path(probe);
	const answer = await resource.post(probe, { method: 'POST', path, body: refusal.body });
	if (answer.status < 300 && !refusal.isDocumented) {
		probe.deviate(`${refusal.what} is accepted`);
		return;
	}
	expectRefusal(probe, answer, { what: refusal.what, statuses: [400] });
	const body = typeof answer.json === 'object' && answer.json !== null ? answer.json : {};
	if (!Object.hasOwn(body, refusal.key))
		probe.deviate(`the refusal of ${refusal.what} does not name ${refusal.key}`);
}

async function remove(probe: Probe, resource: Resource, record: Json): Promise<void> {
	const path = await onePath(probe, resource, record);
	const { text } = await expectStatus(probe, { method: 'DELETE', path }, 204);
	if (text !== '') probe.deviate('the answer to DELETE has a body');
	const after = await probe.call({ method: 'GET', path });
	if (after.status === 200) throw new Broken(`the ${resource.one} is still there after its deletion`);
	expectRefusal(probe, after, { what: `reading a deleted ${resource.one}`, statuses: [404] });
	const again = await probe.call({ method: 'DELETE', path });
	if (again.status < 300) probe.deviate(`deleting a ${resource.one} twice is a ${again.status}, not a 404`);
	else expectRefusal(probe, again, { what: `deleting a ${resource.one} twice`, statuses: [404] });
}

async function onePath(probe: Probe, resource: Resource, record: Json): Promise<string> {
	return `${await resource.path(probe)}${String(record['id'])}/`;
}

/** Keys of the document only: further keys of a deployment may change freely. */
function known({ shape }: Resource, record: Json): Json {
	return Object.fromEntries(Object.entries(record).filter(([key]) => Object.hasOwn(shape, key)));
}
