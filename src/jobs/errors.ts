/**
 * `in_use`: another process works on it; `unwritable`: this user cannot write the folder of jobs; `other_road`: the job
 * was begun on a deployment of another kind.
 */
export type JobFault = 'in_use' | 'unwritable' | 'other_road';

/**
 * A job that cannot continue in its present state; nothing was changed. Full disks and the like keep the system's
 * error.
 */
export class JobError extends Error {
	override readonly name = 'JobError';
	readonly code: JobFault;

	constructor(code: JobFault, message: string) {
		super(message);
		this.code = code;
	}
}
