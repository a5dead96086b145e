/** What a job is called. */
import { randomBytes } from 'node:crypto';
import { UsageError } from '../../errors.js';

/** As many as a deployment of ours takes. */
const maxLength = 255;

/** The given name, or one that is made up. Throws `UsageError` for one that could not be typed again. */
export function jobName({ job }: { job?: string | undefined }): string {
	if (job === undefined) return `send-${randomBytes(6).toString('hex')}`;
	if (job.trim() !== job || job === '' || job.length > maxLength || /[\p{Cc}\p{Cf}]/u.test(job))
		throw new UsageError(
			`--job ${JSON.stringify(job.slice(0, 60))} is no name: 1 to ${maxLength} visible characters`,
		);
	return job;
}
