import type { AcceptCounts, Recipient, RequestRow } from '../api/campaigns.js';
import type { Ack, Session } from '../api/capabilities.js';
import { ApiError } from '../api/errors.js';
import { variablePattern } from '../api/inputs.js';
import { decodeUtf8, isRecord, parseJson, withoutExactNumbers } from '../api/json.js';
import { cellOf, fold, type Place, variableOf } from '../tables/column-names.js';
import type { TableRow } from '../tables/finding.js';
import { clean, type HeaderFinding, mapHeader } from '../tables/map-columns.js';
import type { Line } from '../tables/read-lines.js';

interface CampaignSink<Row> {
	put(first: number, rows: readonly Row[]): Promise<Ack<AcceptCounts>>;
	complete(position: number): Promise<void>;
}

interface StagingJob<Row> {
	session: Session;
	rows: AsyncIterable<Row>;
	sink: CampaignSink<Row>;
	batchRows?: number;
	batchBytes?: number;
	signal?: AbortSignal;
	onProgress?: (position: number) => void;
}

export const maxRowsBytes = 4 * 1024 * 1024 - 64 * 1024;

const defaultRows = 2_000;

/** Each row must fit into one batch. */
export async function stageRows<Row>(job: StagingJob<Row>): Promise<void> {
	const { session, rows, sink, signal, onProgress } = job;
	const { batchRows = defaultRows, batchBytes = maxRowsBytes } = job;
	let position = session.position;
	onProgress?.(position);
	let seen = 0;
	let batch: Row[] = [];
	let bytes = 0;
	const put = async () => {
		if (batch.length === 0) return;
		position = await putWhole(sink, position, batch);
		onProgress?.(position);
		batch = [];
		bytes = 0;
		signal?.throwIfAborted();
	};
	for await (const row of rows) {
		signal?.throwIfAborted();
		seen += 1;
		if (seen <= session.position) continue;
		const size = Buffer.byteLength(JSON.stringify(row)) + 1;
		if (bytes + size > batchBytes || batch.length >= batchRows) await put();
		batch.push(row);
		bytes += size;
	}
	await put();
	if (seen < position)
		throw new ApiError('conflict', `the source has ${seen} rows, but ${position} were sent before`);
	await sink.complete(position);
}

async function putWhole<Row>(sink: CampaignSink<Row>, first: number, rows: readonly Row[]): Promise<number> {
	const ack = await sink.put(first, rows);
	const end = first + rows.length;
	if (ack.position === end) return end;
	throw new ApiError('bad_answer', `the next row is ${end}, but the service expects row ${ack.position}`);
}

/** An empty cell overrides the value in the subscriber's meta. */
export function toRecipient(row: TableRow, { email, variables }: CampaignColumns): Recipient {
	const { line, cells } = row;
	const to = (cells[email] ?? '').trim().slice(0, maxAddress);
	if (row.kind === 'bad') return { to, line, refused: { code: row.code, error: row.error } };
	const context = Object.fromEntries(variables.map((one) => [one.name, cellOf(cells, one)]));
	if (charactersOf(context) * maxBytesPerCharacter > maxRowsBytes && bytesOf(context) > maxRowsBytes)
		return { to, line, refused: tooLong };
	return { to, line, context };
}

const maxAddress = 320;
const maxBytesPerCharacter = 6;
const tooLong = { code: 'row_too_long', error: 'the row is too long for a batch of 4 MiB' };

function charactersOf(context: Readonly<Record<string, string>>): number {
	return Object.values(context).reduce((sum, value) => sum + value.length, 0);
}

function bytesOf(context: Readonly<Record<string, string>>): number {
	return Buffer.byteLength(JSON.stringify(context)) + 1_024;
}

export async function* requestRows(lines: AsyncIterable<Line>): AsyncGenerator<RequestRow, void, undefined> {
	for await (const line of lines) yield toRequest(line);
}

function toRequest({ line, bytes, length, isCut }: Line): RequestRow {
	if (isCut || length > maxRowsBytes - 1_024) return refused(line, 'row_too_long', 'longer than 4 MiB');
	const text = decodeUtf8(bytes);
	if (text === null) return refused(line, 'encoding', 'not UTF-8');
	const parsed = parseJson(text, { numbers: 'exact' });
	if (parsed.kind === 'invalid') return refused(line, 'bad_json', 'not usable JSON');
	return { line, request: withoutLongNumbers(parsed.value) };
}

const textKeys: ReadonlySet<string> = new Set([
	...['subject', 'text_body', 'html_body', 'tag', 'headers', 'context'],
]);

/** Turns numbers in the values of `textKeys` into strings if JavaScript would drop digits or the decimal point. */
function withoutLongNumbers(request: unknown): unknown {
	if (!isRecord(request)) return withoutExactNumbers(request);
	const entries = Object.entries(request).map(([key, value]) => [
		key,
		textKeys.has(key) ? withoutExactNumbers(value, String) : withoutExactNumbers(value),
	]);
	return Object.fromEntries(entries);
}

function refused(line: number, code: string, error: string): RequestRow {
	return { line, request: null, refused: { code, error } };
}

export interface CampaignColumns {
	email: number;
	variables: readonly (Place & { name: string })[];
	ignored: readonly string[];
}

type ColumnsResult =
	| { kind: 'columns'; columns: CampaignColumns }
	| { kind: 'refused'; findings: readonly HeaderFinding[] };

export function campaignColumns(header: readonly string[], map: readonly string[]): ColumnsResult {
	const fields = [...header.map(fieldOf), ...map.map(targetOf)].filter((field) => field !== null);
	const known = [...new Map(fields.map((field) => [field.variable, field])).values()];
	const mapped = mapHeader(header, { fields: known, map, unknown: 'ignore' });
	if (mapped.kind === 'refused') return mapped;
	const { columns, ignored, leftOut } = mapped.mapping;
	const email = columns.find(({ target }) => target === 'email');
	if (email === undefined) return { kind: 'refused', findings: [] };
	const variables = columns.flatMap(({ target, ...at }) => {
		const name = target.replace(/^meta\./, '');
		const names = target === 'email' ? [] : [name];
		const written = at.joined === undefined ? asWritten(header[at.index] ?? '', target) : [];
		return [...names, ...written].map((one) => ({ ...at, name: one }));
	});
	const taken = new Set([
		...leftOut,
		...columns.flatMap((one) => (one.joined === undefined ? one.index : [])),
	]);
	const parts = columns.flatMap(({ index, joined = [] }) => [index, ...joined]);
	variables.push(
		...ownVariables(
			header,
			parts.filter((index) => !taken.has(index)),
			variables,
		),
	);
	return { kind: 'columns', columns: { email: email.index, variables, ignored } };
}

/** With `--map "First+Last=name"`, `#First#` and `#Last#` still work beside `#name#`. */
function ownVariables(
	header: readonly string[],
	parts: readonly number[],
	variables: readonly { name: string }[],
): CampaignColumns['variables'] {
	const own = new Map<string, number>();
	for (const index of parts) {
		const name = fieldOf(header[index] ?? '')?.variable;
		if (name !== undefined && !variables.some((one) => one.name === name)) own.set(name, index);
	}
	return [...own].map(([name, index]) => ({ name, index }));
}

function asWritten(column: string, target: string): string[] {
	const plain = clean(column);
	if (recordColumn(plain) !== target || reserved.has(plain) || !isVariableName(plain)) return [];
	return plain === target ? [] : [plain];
}

interface Named {
	variable: string;
	name: string;
}

/** Turns `First Name` into `first_name`, as an import does when it creates fields. */
function fieldOf(column: string): Named | null {
	const plain = clean(column);
	if (recordColumn(plain) !== null) return null;
	const bare = plain.replace(/^meta\./i, '');
	const isSeen = !/[\p{Cc}\p{Cf}]/u.test(bare);
	const name = isVariableName(bare) ? bare : isSeen ? variableOf(bare) : null;
	return name === null || reserved.has(name) ? null : { variable: name, name: plain };
}

function recordColumn(column: string): 'email' | 'name' | null {
	if (fold(column) === 'name') return 'name';
	return mapHeader([column], { fields: [], unknown: 'ignore' }).kind === 'mapped' ? 'email' : null;
}

function targetOf(pair: string): Named | null {
	const target = pair.slice(pair.lastIndexOf('=') + 1).trim();
	return isVariableName(target) && !reserved.has(target) ? { variable: target, name: target } : null;
}

/** The address and the name are mapped separately. Assigning to `__proto__` would change an object's prototype. */
const reserved = new Set(['email', 'name', '__proto__']);

interface Misnamed {
	written: string;
	column: string;
	variable: string | null;
}

export function misnamedVariables(
	texts: readonly string[],
	header: readonly string[],
	{ variables }: Pick<CampaignColumns, 'variables'>,
): Misnamed[] {
	const columns = new Map(header.map((name, index) => [fold(name), { name: clean(name), index }]));
	const given = new Set(variables.map(({ name }) => name));
	const found = new Map<string, Misnamed>();
	for (const written of texts.flatMap((text) => [...wordsIn(text, columns)])) {
		const column = columns.get(fold(written));
		if (column === undefined || given.has(written)) continue;
		const variable =
			variables.find((one) => one.index === column.index && one.joined === undefined)?.name ?? null;
		found.set(written, { written, column: column.name, variable });
	}
	return [...found.values()];
}

export function isVariableName(name: string): boolean {
	return variablePattern.test(name);
}

function* wordsIn(text: string, columns: ReadonlyMap<string, unknown>): Generator<string> {
	const pieces = text.split('#');
	for (let at = 1; at < pieces.length - 1; at += 1) {
		const word = (pieces[at] ?? '').split('|', 1)[0] ?? '';
		if (word.length > maxWord) continue;
		const folded = fold(word);
		if (!isVariableName(word) && (folded === '' || !columns.has(folded))) continue;
		yield word;
		at += 1;
	}
}

const maxWord = 200;
