/** Reads a table, maps, converts and checks its rows, and sends them in bundles, a bounded number ahead. */
import { parentPort, workerData } from 'node:worker_threads';
import { openTable } from '../cli/tabular/read-table.js';
import { encodeRows } from '../engine/rules/checked-rows.js';
import { parseImportRows } from '../engine/rules/import-rows.js';
import { bundleRows } from '../jobs/import-bundles.js';
import { type CheckRows, type PackedBundle, packBundle } from '../jobs/packed-bundles.js';
import {
	formatTableFailure,
	maxRowsAhead,
	maxSizeAhead,
	sizeOf,
	type TableMessage,
	type TableOrder,
} from './table-messages.js';

/** Sent and not taken yet, oldest first. */
const ahead: { size: number; rows: number }[] = [];
let wake = () => {};

async function send({ path, encoding, delimiter, request }: TableOrder): Promise<void> {
	const table = await openTable(path, { encoding, delimiter });
	const columns = request.mapping.columns.map(({ target }) => target);
	const check = request.form === 'checked' ? checkRows : null;
	for await (const bundle of bundleRows(table.rows, request.mapping, request.maxRows)) {
		post(packBundle(bundle, columns, check));
		while (isFarAhead()) await taken();
	}
}

const checkRows: CheckRows = (columns, cells) => encodeRows(parseImportRows({ columns, cells }));

function post(bundle: PackedBundle): void {
	ahead.push({ size: sizeOf(bundle), rows: bundle.lines.length });
	say({ kind: 'bundle', bundle }, [bundle.original.buffer]);
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

/** Each message says that the oldest bundle was taken. */
parentPort?.on('message', () => {
	ahead.shift();
	wake();
});

// What starts a thread gives it its order.
send(workerData as TableOrder)
	.then(
		() => say({ kind: 'end' }),
		(error: unknown) => say(formatTableFailure(error)),
	)
	.finally(() => parentPort?.close());
