/** The next step after an error that says that the base URL may be wrong, or that its certificate is not trusted. */
import { ApiError } from '../../api/errors.js';
import { operations } from '../../api/operations.js';
import { distrustOf } from '../doctor/certificate.js';
import type { Hint, OwnCommand } from '../frame/command-line.js';
import { classify } from '../frame/exit.js';

export interface Ways {
	doctor: OwnCommand;
	/** See `serverAtOrigin`. */
	serverAtOrigin: () => Promise<string | null>;
	moveTo: (baseUrl: string) => OwnCommand;
}

export async function wrongBaseHints(error: unknown, baseUrl: string, ways: Ways): Promise<Hint[]> {
	const cause = error instanceof Error && !(error instanceof ApiError) ? error.cause : error;
	if (!(cause instanceof ApiError)) return [];
	const looks: Hint = [ways.doctor, ' looks at it'];
	if (cause.misdirected === 'tls') {
		const secure = baseUrl.replace(/^http:/i, 'https:');
		return [[`the port may speak TLS: is it ${secure}? `, looks]];
	}
	if (cause.misdirected === 'protocol') return [[`is ${baseUrl} the right base URL? `, looks]];
	if (isUnknownAuthority(cause)) return ['--ca-cert FILE names an authority of your own'];
	const { http } = cause;
	if (http === null) return [];
	const isPage = cause.misdirected === 'page';
	const { code, hint } = classify(error);
	if (!isPage && (code !== 'not_found' || hint !== null || !isFixedPath(http.path))) return [];
	const right = await rightBaseHints(ways);
	if (right.length > 0) return right;
	const answer = isPage ? 'with a web page' : String(http.status);
	// A path that begins with // names no host here.
	const asked = `${http.method} ${new URL(baseUrl).origin}${http.path}`;
	return [[`${asked} answered ${answer}: is the base URL right? `, looks]];
}

/** Empty where no mailctl server is found at the root of the host. */
export async function rightBaseHints({ serverAtOrigin, moveTo }: Omit<Ways, 'doctor'>): Promise<Hint[]> {
	const origin = await serverAtOrigin();
	return origin === null
		? []
		: [[`${origin} answers as a mailctl server: the base URL is that: `, moveTo(origin)]];
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
	return Object.values(operations).some((own) => isFixed(own.path) && path.endsWith(own.path));
}
