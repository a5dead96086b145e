/** `other_road`: an earlier run stored the job on the service, and this run would store it locally, or the reverse. */
export type JobFault = 'in_use' | 'unwritable' | 'other_road';

export class JobError extends Error {
	override readonly name = 'JobError';
	readonly code: JobFault;

	constructor(code: JobFault, message: string) {
		super(message);
		this.code = code;
	}
}
