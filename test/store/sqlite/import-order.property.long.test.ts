import fc from 'fast-check';
import { expect, it } from 'vitest';
import { addImportCounts } from '../../../src/api/counts.js';
import { newTexts, TextWriter } from '../../../src/api/row-texts.js';
import { encodeRow, parseImportRows } from '../../../src/engine/rules/import-rows.js';
import { noon } from '../../contract/store/fixture.js';
import { startLine } from './import-lines.js';

const columns = ['email', 'name'];
const email = fc.constantFrom(
	'a@x.org',
	'A@X.org',
	'b@x.org',
	'c@münchen.de',
	'c@MÜNCHEN.de',
	'none',
	'~~~~~b@x.org',
	'~~~~~a@x.org',
);
const name = fc.constantFrom(null, 'One', 'Two', 'Three');
const rows = fc.array(fc.tuple(email, name), { minLength: 1, maxLength: 40 });
type Row = [email: string, name: string | null];

interface Cut {
	batch: number;
	transaction: number;
	form: 'cells' | 'checked' | 'both';
}

const cut: fc.Arbitrary<Cut> = fc.record({
	batch: fc.integer({ min: 1, max: 15 }),
	transaction: fc.integer({ min: 1, max: 30 }),
	form: fc.constantFrom('cells', 'checked', 'both'),
});

async function outcomeOf(all: readonly Row[], { batch, transaction, form }: Cut) {
	const { core, line, put } = startLine({ rows: () => transaction, took: () => undefined });
	core.createSubscriber({ list_id: 1, input: { email: 'B@x.org', name: 'Was here' }, now: noon });
	const starts = Array.from({ length: Math.ceil(all.length / batch) }, (_, index) => index * batch);
	const outcomes = await Promise.all(
		starts.map((first, index) => {
			const cells = all.slice(first, first + batch).flat();
			const isChecked = form === 'checked' || (form === 'both' && index % 2 === 0);
			return line.put(put(isChecked ? checked(first, cells) : { first, columns, cells }));
		}),
	);
	const acks = outcomes.map((outcome) =>
		outcome.kind === 'acknowledged' ? outcome.ack : expect.unreachable(),
	);
	const people = core.sliceSubscribers({ list_id: 1, after: 0, limit: 100, filter: {} }) ?? [];
	return {
		position: acks.at(-1)?.position,
		counts: acks.map(({ counts }) => counts).reduce(addImportCounts),
		rejects: acks.flatMap(({ rejects }) => rejects),
		people: people.map((one) => [one.email, one.name]),
		counted: core.getList({ id: 1 })?.active_subscribers_count,
	};
}

function checked(first: number, cells: (string | null)[]) {
	const texts = newTexts();
	const writer = new TextWriter(texts);
	for (const row of parseImportRows({ columns, cells })) writer.add(encodeRow(row));
	return { first, variables: [], rows: texts };
}

it('comes to the same, in the same order of ids', async () => {
	const alone: Cut = { batch: 1, transaction: 1, form: 'cells' };
	await fc.assert(
		fc.asyncProperty(rows, cut, async (all, how) => {
			expect(await outcomeOf(all, how)).toEqual(await outcomeOf(all, alone));
		}),
		{ numRuns: 100 },
	);
});
