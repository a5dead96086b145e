import { parentPort, workerData } from 'node:worker_threads';
import { encodeRow, importRowParser } from '../engine/rules/import-rows.js';
import { type Bundle, bundleRows, columnsOf, type RowBytes, sizeOf } from '../jobs/import-bundles.js';
import { openTable } from '../tables/read-table.js';
import { formatFailure } from './channel.js';
import {
	buffersOf,
	maxRowsAhead,
	maxSizeAhead,
	type TableMessage,
	type TableOrder,
	type TableReply,
} from './table-reader.js';

const ahead: { size: number; rows: number }[] = [];
const spares: RowBytes[] = [];
let wake = () => {};

async function send({ path, encoding, delimiter, request }: TableOrder): Promise<void> {
	const table = await openTable(path, { encoding, delimiter });
	const parse = request.form === 'checked' ? importRowParser(columnsOf(request.mapping)) : null;
	const check =
		parse === null ? {} : { check: (cells: Parameters<typeof parse>[0]) => encodeRow(parse(cells)) };
	for await (const { first, form, rows, rejects } of bundleRows(table.rows, request, { ...check, spares })) {
		post({ first, form, rows, rejects });
		while (isFarAhead()) await taken();
	}
}

function post(bundle: Bundle): void {
	ahead.push({ size: sizeOf(bundle), rows: bundle.rows.put.count });
	say({ kind: 'bundle', bundle }, buffersOf(bundle.rows));
}

function isFarAhead(): boolean {
	const size = ahead.reduce((sum, one) => sum + one.size, 0);
	const rows = ahead.reduce((sum, one) => sum + one.rows, 0);
	return size > maxSizeAhead || rows > maxRowsAhead;
}

function taken(): Promise<void> {
	return new Promise((resolve) => {
		wake = resolve;
	});
}

function say(message: TableMessage, handedOver: ArrayBuffer[] = []): void {
	parentPort?.postMessage(message, handedOver);
}

/** Keeps spare buffers of at most `maxSizeAhead` bytes, because buffers grow with long rows and never shrink. */
function keep(spare: RowBytes): void {
	const kept = [...spares, spare].reduce((sum, one) => sum + capacityOf(one), 0);
	if (kept <= maxSizeAhead) spares.push(spare);
}

function capacityOf({ put, originals }: RowBytes): number {
	return put.bytes.length + originals.bytes.length;
}

parentPort?.on('message', (reply: TableReply) => {
	if (reply !== 'taken') return keep(reply);
	ahead.shift();
	wake();
});

send(workerData as TableOrder)
	.then(
		() => say({ kind: 'end' }),
		(error: unknown) => say({ kind: 'failed', failure: formatFailure(error) }),
	)
	.finally(() => parentPort?.close());
