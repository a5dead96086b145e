/** Reads mails that came back: each is a question, and what it says is the answer. */
import { parentPort } from 'node:worker_threads';
import { readMail } from '../delivery/bounces/read-mail.js';
import type { ReportAnswer } from './report-reader.js';

parentPort?.on('message', ({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>) => {
	const mail = readMail(Buffer.from(buffer, byteOffset, byteLength));
	parentPort?.postMessage({ kind: 'read', mail } satisfies ReportAnswer);
});
parentPort?.postMessage({ kind: 'ready' } satisfies ReportAnswer);
