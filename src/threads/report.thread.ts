import { parentPort } from 'node:worker_threads';
import { readMail } from '../delivery/bounces/ingest.js';
import type { ReportAnswer } from './readers.js';

parentPort?.on('message', ({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>) => {
	const mail = readMail(Buffer.from(buffer, byteOffset, byteLength));
	parentPort?.postMessage({ kind: 'read', mail } satisfies ReportAnswer);
});
parentPort?.postMessage({ kind: 'ready' } satisfies ReportAnswer);
