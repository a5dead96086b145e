/** What a request asks for, before anybody has looked at who asks. */
import type { HttpRequest } from '../messages.js';
import { type Method, type Operation, routes } from '../routes.js';
import { findPlace, type OwnPlace, type Place, readIds } from './match.js';
import { parseQuery, type Query } from './query.js';

/** A request, and where in the table it leads. */
export interface Looked {
	request: HttpRequest;
	method: string;
	place: Place | OwnPlace | null;
	/** Null: none of this method here. */
	operation: Operation | null;
	query: Query;
	/** For the log. */
	shownPath: string;
}

/** Never throws. */
export function look(request: HttpRequest): Looked {
	// A proxy may ask with the whole URL (RFC 9112 s.3.2.2).
	const target = request.target.replace(/^https?:\/\/[^/?#]*/i, '');
	const [path = '', query = ''] = splitOnce(target, '?');
	const place = findPlace(path);
	const { method } = request;
	const operation = place?.kind === 'operations' ? operationOf(place, method) : null;
	return {
		request,
		method,
		place,
		operation,
		query: parseQuery(query),
		shownPath: isHarmless(place) ? path : maskPath(path),
	};
}

function operationOf({ operations: here }: Place, method: string): Operation | null {
	// A HEAD of what acts would act, unasked for (api-decisions 33).
	if (method === 'HEAD') return here.GET !== undefined && !('isUnsafe' in routes[here.GET]) ? here.GET : null;
	// An unknown method is no key of these.
	return here[method as Method] ?? null;
}

/** One of few names, for figures. */
export function operationName({ place, operation }: Looked): string {
	if (place?.kind === 'own') return place.path;
	return operation ?? 'other';
}

/** Words of the table, integers and UUIDs: no token is one of these. */
function isHarmless(place: Place | OwnPlace | null): boolean {
	return place !== null && (place.kind === 'own' || readIds(place.values) !== null);
}

/** Somebody may have put a token into a path that does not exist: only words are shown, and none of public pages. */
function maskPath(path: string): string {
	if (/^\/[ocuv]\//.test(path)) return `${path.slice(0, 3)}…`;
	const parts = path.slice(0, 512).split('/');
	return parts.map((part) => (/^[a-z_.-]{0,20}$/.test(part) ? part : '…')).join('/');
}

function splitOnce(text: string, separator: string): [string, string] {
	const at = text.indexOf(separator);
	return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
