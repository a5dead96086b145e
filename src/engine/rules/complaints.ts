/** Complaints about fields as one flat list. */
import type { FieldErrors } from '../../api/errors.js';

/** One complaint; `path` joins the names that lead to it: `context.city`. */
export interface Complaint {
	path: string;
	code: string;
	message: string;
}

/** All of them, in their order. */
export function complaintsOf(errors: FieldErrors, above: readonly string[] = []): Complaint[] {
	return Object.entries(errors).flatMap(([name, of]) => {
		const path = [...above, name];
		return isComplaints(of)
			? of.map(({ code, message }) => ({ path: path.join('.'), code, message }))
			: complaintsOf(of, path);
	});
}

function isComplaints(of: FieldErrors[string]): of is Extract<FieldErrors[string], readonly unknown[]> {
	return Array.isArray(of);
}
