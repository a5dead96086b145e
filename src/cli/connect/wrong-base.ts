/** The next step after an error that says that the base URL may be wrong, or that its certificate is not trusted. */
import { ApiError } from '../../api/errors.js';
import { routes } from '../../http/routes.js';
import { distrustOf } from '../doctor/certificate.js';
import type { Hint, OwnCommand } from '../frame/command-line.js';
import { classify } from '../frame/exit.js';

/** Empty for all other errors. `doctor` is the command that looks at the base URL. */
export function wrongBaseHints(error: unknown, baseUrl: string, doctor: OwnCommand): Hint[] {
	const cause = error instanceof Error && !(error instanceof ApiError) ? error.cause : error;
	if (!(cause instanceof ApiError)) return [];
	const looks: Hint = [doctor, ' looks at it'];
	if (cause.misdirected === 'tls') {
		const secure = baseUrl.replace(/^http:/i, 'https:');
		return [[`the port may speak TLS: is it ${secure}? `, looks]];
	}
	if (isUnknownAuthority(cause)) return ['--ca-cert FILE names an authority of your own'];
	const { http } = cause;
	if (http === null) return [];
	const asked = `${http.method} ${new URL(http.path, baseUrl).href}`;
	if (cause.misdirected === 'page')
		return [[`${asked} answered with a web page: is the base URL right? `, looks]];
	const { code, hint } = classify(error);
	if (code !== 'not_found' || hint !== null || !isFixedPath(http.path)) return [];
	return [[`${asked} answered ${http.status}: is the base URL right? `, looks]];
}

function isUnknownAuthority({ cause }: ApiError): boolean {
	return cause instanceof Error && 'code' in cause && distrustOf(cause.code).because === 'authority';
}

/**
 * Paths of the service document that name no record: below the right base URL each deployment has them. With whatever
 * the base URL has before it.
 */
function isFixedPath(path: string): boolean {
	const isFixed = (own: string) => !own.includes('{') && !own.startsWith('/ext/');
	return Object.values(routes).some((route) => isFixed(route.path) && path.endsWith(route.path));
}
