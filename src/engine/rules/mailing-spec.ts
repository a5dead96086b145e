/** When two specs open the same mailing. */
import type { MailingSpec } from '../../api/capabilities.js';
import type { RequestsSpec } from '../../api/mailings.js';
import { canonicalJson } from './ids.js';

/** Equal for specs that are the same mailing: all of a spec but where its source lay, for a file may be moved. */
export function specIdentity(spec: MailingSpec | RequestsSpec): string {
	const { source, ...rest } = spec;
	if (source === undefined) return canonicalJson(rest);
	const { path: _, ...compared } = source;
	return canonicalJson({ ...rest, source: compared });
}
