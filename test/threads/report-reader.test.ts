import { Worker } from 'node:worker_threads';
import { afterEach, expect, it } from 'vitest';
import { readMail } from '../../src/delivery/bounces/ingest.js';
import { createReportReader, type ReportReader } from '../../src/threads/readers.js';
import { dsn } from '../delivery/bounces/build.js';
import { corpusFiles } from '../delivery/bounces/corpus.js';

let reader: ReportReader | null = null;
afterEach(() => reader?.close());

function open(...options: Parameters<typeof createReportReader>): ReportReader {
	reader = createReportReader(...options);
	return reader;
}

const status =
	'Reporting-MTA: dns; mx.example.org\n\nFinal-Recipient: rfc822; ann@example.org\nAction: failed\nStatus: 5.1.1\n';
const bounce = dsn(status, { returned: 'Message-ID: <1@example.com>\nX-Job: 7\nTo: ann@example.org' });
const expensive = Buffer.from(
	`Content-Type: multipart/mixed; boundary=b\n\n${`--b\nContent-Type: text/plain; charset=utf-7\n\n${'+AOk-\n'.repeat(6_000)}`.repeat(100)}`,
);

it('reading a mail in a thread does not block the process', async () => {
	const order: string[] = [];
	const reading = open()
		.read(expensive)
		.then(() => order.push('read'));
	await new Promise(setImmediate);
	order.push('answered');
	await reading;
	expect(order).toEqual(['answered', 'read']);
});

it('a thread reads each mail with the same result as the main thread', async () => {
	const { read } = open();
	const mails = [
		bounce,
		Buffer.from(''),
		Buffer.from('Subject: x\n\nHello'),
		...corpusFiles().map(({ bytes }) => bytes),
	];
	expect(await Promise.all(mails.map(read))).toEqual(mails.map(readMail));
});

it('reading a mail fails if its thread ends, and a new thread reads the next mail', async () => {
	let started = 0;
	const { read } = open({
		spawn: () => {
			started += 1;
			const read = "{ report: { kind: 'not_a_report', why: 'x' }, sha256: '' }";
			const source = `const { parentPort } = require('node:worker_threads');
				parentPort.on('message', ([{ id, method }]) => {
					if (method === 'read' && ${started === 1}) process.exit(1);
					parentPort.postMessage([{ id, kind: 'value', value: ${read} }]);
				});`;
			return new Worker(source, { eval: true });
		},
	});
	await expect(read(bounce)).rejects.toThrow('the reader of bounces has failed: it ended with 1');
	expect(await read(bounce)).toMatchObject({ report: { kind: 'not_a_report' } });
});
