/** `other_road`: an earlier run started the job on a service of another kind. */
export type JobFault = 'in_use' | 'unwritable' | 'other_road';

export class JobError extends Error {
	override readonly name = 'JobError';
	readonly code: JobFault;

	constructor(code: JobFault, message: string) {
		super(message);
		this.code = code;
	}
}
