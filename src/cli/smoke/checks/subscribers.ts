/** Subscribers. Service document, "Subscribers": those of a list that is there, and of the run's own list. */
import { expectObject, expectRefusal, expectStatus, expectValues } from '../assertions.js';
import { type CheckContext, paths, unknownId } from '../check-context.js';
import { type Check, type Probe, Skipped } from '../model.js';
import { judgePaging, readPage, withQuery } from '../pages.js';
import { type Json, shown, subscriberShape } from '../shapes.js';
import { collectionChecks } from './collections.js';
import { crudChecks } from './crud.js';
import { filterChecks, ownFilterCheck } from './filters.js';

/** One more than a page of ten, which is not uncommon. */
const manySubscribers = 11;

/** In the order of `crudChecks`. Subscribers are in the run’s own list and are deleted with it, untracked. */
export function subscriberChecks(context: CheckContext): Check[] {
	const { names } = context;
	const base = { group: 'subscribers', one: 'subscriber', shape: subscriberShape } as const;
	const existingPath = existing();
	const ownPath = async (probe: Probe) => paths.subscribers(await context.list(probe));
	const defaults = { is_active: true, disable_reason: null, is_email_verified: false, source: 'API' };
	return crudChecks(
		{
			...base,
			mark: 'email',
			path: ownPath,
			post: (probe, ask) => probe.call(ask),
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
			replace: {
				body: { email: `replaced-${names.email(1)}`, name: 'Smoke Replaced' },
				expected: { email: `replaced-${names.email(1)}`, name: 'Smoke Replaced', is_active: true },
				decided: { meta: {} },
			},
			refusals: [
				{
					id: 'requires-email',
					what: 'a subscriber without an email',
					body: { name: 'x' },
					key: 'email',
					isDocumented: true,
				},
				{
					id: 'malformed',
					what: 'a malformed address',
					body: { email: 'smoke' },
					key: 'email',
					isDocumented: false,
				},
				{
					id: 'unique',
					what: 'the same address twice in a list',
					body: { email: `replaced-${names.email(1)}` },
					key: 'email',
					isDocumented: false,
				},
				{
					id: 'unknown-meta',
					what: 'a meta key that is no field',
					body: { email: names.email(99), meta: `{"${names.variable}_none": "x"}` },
					key: 'meta',
					isDocumented: false,
				},
			],
		},
		[...collectionChecks({ ...base, path: existingPath }), unknownListCheck(), ...filterChecks(existingPath)],
		(made) => [activeCheck(ownPath, made), ownFilterCheck(context, ownPath), pagingCheck(context, ownPath)],
	);
}

/** Looked for once: the path of `findExisting` for all checks of a run. */
function existing(): Path {
	let found: Promise<string> | null = null;
	return (probe) => {
		found ??= findExisting(probe);
		return found;
	};
}

/** A list with subscribers if there is one, else any. */
async function findExisting(probe: Probe): Promise<string> {
	const { results } = await readPage(probe, paths.lists);
	const list = results.find((one) => Number(one['overall_subscribers_count']) > 0) ?? results[0];
	const id = list?.['id'];
	if (typeof id !== 'number') throw new Skipped('there is no list to look at');
	return paths.subscribers(id);
}

function unknownListCheck(): Check {
	return {
		id: 'subscribers.unknown-list',
		group: 'subscribers',
		title: 'a list that is not there has no subscribers: a 404',
		need: 'read',
		run: async (probe) => {
			const answer = await probe.call({ method: 'GET', path: paths.subscribers(unknownId) });
			expectRefusal(probe, answer, { what: 'an unknown list', statuses: [404] });
			return undefined;
		},
	};
}

type Path = (probe: Probe) => Promise<string>;

function activeCheck(path: Path, made: { get(): Json }): Check {
	return {
		id: 'subscribers.deactivate',
		group: 'subscribers',
		title: 'PATCH deactivates, and the list counts it',
		need: 'change',
		run: async (probe) => {
			const own = await path(probe);
			const one = `${own}${String(made.get()['id'])}/`;
			const after = await expectObject(
				probe,
				{ method: 'PATCH', path: one, body: { is_active: false } },
				200,
			);
			expectValues(probe.fault, after, { is_active: false, email: made.get()['email'] }, 'deactivated');
			const list = await expectObject(probe, { method: 'GET', path: own.replace(/subscribers\/$/, '') }, 200);
			const counts = { active: list['active_subscribers_count'], all: list['overall_subscribers_count'] };
			const inactive = list['inactive_subscribers_count'];
			if (Number(counts.active) + Number(inactive) !== Number(counts.all) || Number(inactive) < 1)
				probe.fault(
					`the list counts ${shown(counts.active)} active, ${shown(inactive)} inactive, ${shown(counts.all)} in all`,
				);
			return undefined;
		},
	};
}

function pagingCheck({ names }: CheckContext, path: Path): Check {
	return {
		id: 'subscribers.pages',
		group: 'subscribers',
		title: 'a list of several pages is read page by page',
		need: 'change',
		run: async (probe) => {
			const own = await path(probe);
			const first = await readPage(probe, withQuery(own, { page_size: 1 }));
			// Where pages of one row are not to be had, a few more may take a second page.
			const missing = first.results.length === 1 ? 0 : manySubscribers - first.results.length;
			for (let at = 0; at < missing; at += 1) {
				const body = { email: names.email(10 + at) };
				await expectStatus(probe, { method: 'POST', path: own, body }, 201);
			}
			return judgePaging(probe, own);
		},
	};
}
