/** `subscribers import --dry-run`: every row is read, checked and held against the list as it is; nothing is written. */
import type { ImportSpec } from '../../../../api/capabilities.js';
import type { List } from '../../../../api/records.js';
import { AddressSet } from '../../../../jobs/foreign/address-set.js';
import { type Bundle, bundleRows } from '../../../../jobs/import-bundles.js';
import type { CommandContext } from '../../../context.js';
import { sayPlannedRejects } from '../../../importing.js';
import { shown } from '../../../render/counted.js';
import { duplicateCode } from '../../../tabular/finding.js';
import type { Mapping } from '../../../tabular/header.js';
import type { Table } from '../../../tabular/read-table.js';
import { walk } from '../../../walk.js';
import { type ForecastRules, forecast, readPlanned, refusalOf } from './forecast.js';
import { type Found, Standings } from './standing.js';

export interface PlanJob {
	table: Table;
	mapping: Mapping;
	list: List;
	spec: ImportSpec;
	/** Requests in flight. */
	concurrency: number;
	/** How the source is called. */
	file: string;
}

/** read = the sum of the others, always. */
interface PlanCounts {
	read: number;
	created: number;
	updated: number;
	unchanged: number;
	duplicate: number;
	rejected: number;
	/** Good rows that were not held against the list: new, updated or unchanged. */
	unchecked: number;
}

interface ShownReject {
	line: number;
	code: string;
	error: string;
}

/** Requests to a service at most, twice: questions, then pages. A database of one's own is asked as often as need be. */
const maxRequests = 20_000;
/** Of the rejected rows so many are listed. */
const maxRejects = 20;
const bundleSize = 1_000;

/** Prints the plan; throws what reading and asking throw. */
export async function planImport(cx: CommandContext, job: PlanJob): Promise<void> {
	const { table, mapping, list } = job;
	const plan = new Plan(job, await rulesOf(cx, job), await standingsOf(cx, job));
	const progress = cx.progress('comparing', null);
	try {
		for await (const bundle of bundleRows(table.rows, mapping, bundleSize)) {
			cx.signal.throwIfAborted();
			await plan.add(bundle);
			progress.update(plan.counts.read);
		}
	} finally {
		progress.stop();
	}
	const { format, encoding, delimiter, header } = table;
	const columns = Object.fromEntries(
		mapping.columns.map(({ index, target }) => [header[index] ?? '', target]),
	);
	await cx.wouldDo(`import ${job.file} into list ${list.id} "${list.name}": ${sentence(plan.counts)}`, {
		list_id: list.id,
		...plan.counts,
		rejects: plan.rejects,
		first_row: plan.firstRow(table),
		format,
		encoding,
		delimiter,
		columns,
		left_out: mapping.ignored,
		create_fields: mapping.newFields,
	});
	await explain(cx, plan, table);
}

async function rulesOf(cx: CommandContext, { spec }: PlanJob): Promise<ForecastRules> {
	const { ext } = await (await cx.api()).capabilities();
	return { spec, setsReasons: ext.imports !== undefined };
}

async function standingsOf(cx: CommandContext, { list, mapping, concurrency }: PlanJob): Promise<Standings> {
	const { api, local } = await cx.connection();
	// The address finds a person and the activity is kept beside: neither is a cell to be compared.
	const targets = mapping.columns
		.map(({ target }) => target)
		.filter((one) => !/^(?:email|is_active)$/.test(one));
	return new Standings(api.subscribers(list.id), {
		signal: cx.signal,
		concurrency,
		targets: targets.includes('meta') ? await withEveryField(cx, targets) : targets,
		maxRequests: local === null ? maxRequests : Number.POSITIVE_INFINITY,
	});
}

/** A cell of a column `meta` may name any field. */
async function withEveryField(cx: CommandContext, targets: readonly string[]): Promise<readonly string[]> {
	const all = new Set(targets);
	const { fields } = await cx.api();
	for await (const { variable } of walk(fields, {}, { signal: cx.signal })) all.add(`meta.${variable}`);
	return [...all];
}

class Plan {
	readonly counts: PlanCounts = {
		read: 0,
		created: 0,
		updated: 0,
		unchanged: 0,
		duplicate: 0,
		rejected: 0,
		unchecked: 0,
	};
	readonly rejects: ShownReject[] = [];
	#first: readonly string[] | null = null;
	readonly #mapping: Mapping;
	readonly #columns: readonly string[];
	readonly #rules: ForecastRules;
	readonly #standings: Standings;
	readonly #taken = new AddressSet();

	constructor({ mapping }: PlanJob, rules: ForecastRules, standings: Standings) {
		this.#mapping = mapping;
		this.#columns = mapping.columns.map(({ target }) => target);
		this.#rules = rules;
		this.#standings = standings;
	}

	async add({ first, rows, rejects }: Bundle): Promise<void> {
		this.counts.read += rows.length + rejects.length;
		this.#first ??= rows[0]?.original ?? null;
		const refused: ShownReject[] = rejects.flatMap(({ line, code, error }) =>
			code === duplicateCode ? [] : [{ line, code, error }],
		);
		this.counts.duplicate += rejects.length - refused.length;
		const planned = readPlanned({ first, columns: this.#columns, cells: rows.flatMap(({ cells }) => cells) });
		const checked = planned.map((row) => ({ row, refusal: refusalOf(row) }));
		const good = checked.flatMap(({ row, refusal }) => (refusal === null ? [row] : []));
		const found = (await this.#standings.find(good))[Symbol.iterator]();
		checked.forEach(({ row, refusal }, index) => {
			const fate = refusal ?? this.#fate(row, found.next().value ?? null);
			if (fate.kind === 'rejected')
				refused.push({ line: rows[index]?.line ?? 0, code: fate.code, error: fate.error });
			else this.counts[fate.kind] += 1;
		});
		this.counts.rejected += refused.length;
		refused.sort((a, b) => a.line - b.line);
		this.rejects.push(...refused.slice(0, maxRejects - this.rejects.length));
	}

	/** The first row that can be put, column by column, as it was decoded: a wrong code page shows. Null: there is none. */
	firstRow({ header }: Table): Record<string, string> | null {
		const cells = this.#first;
		if (cells === null) return null;
		return Object.fromEntries(
			this.#mapping.columns.map(({ index }) => [header[index] ?? '', cells[index] ?? '']),
		);
	}

	/** What a refused row says of an address does not count: the next one with it may be good. */
	#fate(row: Parameters<typeof forecast>[0], found: Found) {
		const fate = found === 'unchecked' ? ({ kind: 'unchecked' } as const) : forecast(row, found, this.#rules);
		if (fate.kind === 'rejected' || this.#taken.add(row.key)) return fate;
		return { kind: 'duplicate' } as const;
	}
}

function sentence({ read, unchecked, ...counts }: PlanCounts): string {
	const parts = Object.entries({ ...counts, ...(unchecked > 0 && { unchecked }) });
	return `read ${shown(read)} = ${parts.map(([name, count]) => `${name} ${shown(count)}`).join(' + ')}`;
}

const maxCells = 8;
const maxCellLength = 40;

function shownCells(cells: readonly (readonly [column: string, cell: string])[]): string {
	const cut = (text: string) => (text.length > maxCellLength ? `${text.slice(0, maxCellLength)}…` : text);
	const texts = cells.slice(0, maxCells).map(([column, cell]) => `${cut(column.trim())} = ${cut(cell)}`);
	return `${texts.join(', ')}${cells.length > maxCells ? ', …' : ''}`;
}

/** The first rejected rows for a person, and why not everything was compared. */
async function explain(cx: CommandContext, plan: Plan, table: Table): Promise<void> {
	const { counts, rejects } = plan;
	if (cx.out.format === 'table' || cx.out.format === 'wide') {
		const cells = Object.entries(plan.firstRow(table) ?? {}).filter(([, cell]) => cell !== '');
		if (cells.length > 0) await cx.note(`first row: ${shownCells(cells)}`);
	}
	await sayPlannedRejects(cx, rejects, counts.rejected);
	if (counts.unchecked > 0) {
		await cx.note(
			`the list is too large to be read for a plan: ${shown(maxRequests)} addresses were asked for, the other ${shown(counts.unchecked)} good rows are new, updated or unchanged`,
		);
	}
}
