/** What keeps a ledger from being opened, told so that a person can act on it. */

/**
 * `in_use`: another process writes it; `another_job`: the file belongs to something else; `newer`: a later version wrote
 * it; `no_ledger`: it is a file of another kind; `damaged`: something in its middle cannot be read; `unwritable`: it, or
 * its folder, cannot be written by this user.
 */
export type LedgerFault = 'in_use' | 'another_job' | 'newer' | 'no_ledger' | 'damaged' | 'unwritable';

/** A ledger that cannot be used as it is; nothing was changed. Full disks and the like come as the system tells them. */
export class LedgerError extends Error {
	override readonly name = 'LedgerError';
	readonly code: LedgerFault;

	constructor(code: LedgerFault, message: string) {
		super(message);
		this.code = code;
	}
}
