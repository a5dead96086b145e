/** All that is asked of a mail's bytes before its message is looked for. */
import { createHash } from 'node:crypto';
import { readReport } from './read.js';
import type { Report } from './report.js';

/** Plain data: a thread of its own may have read it. */
export interface ReadMail {
	report: Report;
	/** Of all its bytes, hex. */
	sha256: string;
}

/** Never throws. */
export function readMail(bytes: Buffer): ReadMail {
	return { report: readReport(bytes), sha256: createHash('sha256').update(bytes).digest('hex') };
}
