import { readMail } from '../delivery/bounces/ingest.js';
import { answerQuestions } from './answering.js';

answerQuestions({
	read: ({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>) =>
		readMail(Buffer.from(buffer, byteOffset, byteLength)),
});
