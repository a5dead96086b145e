/** Read-only checks of every collection: shape, pages, one record, an unknown id. */
import { expectObject, expectRecord, expectRecords, expectRefusal, isSame } from '../assertions.js';
import { unknownId } from '../check-context.js';
import { Broken, type Check, type Group, type Probe, Skipped } from '../model.js';
import { judgeFirstPage, judgePaging, type ReadPage, readPage, withQuery } from '../pages.js';
import { type Shape, shown } from '../shapes.js';

export interface Collection {
	group: Group;
	/** `list`, for the texts. */
	one: string;
	shape: Shape;
	/** The path of the collection; throws `Skipped` where there is none. */
	path(probe: Probe): Promise<string>;
}

/** All four change nothing. Skipped where `path` throws `Skipped`, and `get` where nothing is there. */
export function collectionChecks(collection: Collection): Check[] {
	const { group, one, shape } = collection;
	const check = (
		verb: string,
		title: string,
		run: (probe: Probe, path: string) => Promise<string | undefined>,
	): Check => ({
		id: `${group}.${verb}`,
		group,
		title,
		need: 'read',
		run: async (probe) => run(probe, await collection.path(probe)),
	});
	return [
		check('page', `the collection has the documented shape`, async (probe, path) => {
			const page = await readPage(probe, path);
			judgeFirstPage(probe, page);
			expectRecords(probe, shape, page.results, one);
			return seen(page);
		}),
		check('paging', 'its pages follow one another', async (probe, path) => {
			const result = await judgePaging(probe, path);
			const beyond = await probe.call({ method: 'GET', path: withQuery(path, { page: 1_000_000 }) });
			if (beyond.status < 400) probe.deviate(`a page beyond the last is a ${beyond.status}, not a 404`);
			else expectRefusal(probe, beyond, { what: 'a page beyond the last', statuses: [404] });
			return result;
		}),
		check('get', `one ${one} is read as the collection shows it`, async (probe, path) => {
			const [first] = (await readPage(probe, path)).results;
			if (first === undefined) throw new Skipped(`there is no ${one}`);
			const id = first['id'];
			const record = await expectObject(probe, { method: 'GET', path: `${path}${String(id)}/` }, 200);
			expectRecord(probe, shape, record, `${one} ${shown(id)}`);
			if (!isSame(record['id'], id)) throw new Broken(`asked for ${shown(id)}, ${shown(record['id'])} came`);
			for (const key of ['name', 'email', 'variable', 'url', 'date_created'])
				if (!isSame(record[key], first[key]))
					probe.fault(`${key} is ${shown(record[key])} by itself, ${shown(first[key])} in the collection`);
			return undefined;
		}),
		check('unknown', `a ${one} that is not there is a 404`, async (probe, path) => {
			const answer = await probe.call({ method: 'GET', path: `${path}${unknownId}/` });
			expectRefusal(probe, answer, { what: `an unknown ${one}`, statuses: [404] });
			return undefined;
		}),
	];
}

function seen({ count, results }: ReadPage): string {
	return `${results.length} of ${count ?? 'an unknown number'}`;
}
