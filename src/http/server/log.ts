/** One line a request: who, what, how it went. No token, no query, no body. */
import { formatDateTime } from '../../api/datetime.js';
import type { HttpResponse } from '../messages.js';
import { clientIp, plainAddress } from './address.js';
import type { Connection } from './connections.js';
import type { One, Serving } from './serving.js';

/** `status` is null when the client left before it was asked what it wanted, 499 when it left before the answer. */
export function logLine(
	serving: Serving,
	one: One,
	{ began, answer }: { began: number; answer: HttpResponse | null },
): object {
	const now = serving.clock.now();
	return {
		time: `${formatDateTime(now)}Z`,
		id: one.id,
		method: one.request.method ?? '',
		path: answer?.about?.path ?? '',
		status: answer?.status ?? null,
		ms: Math.round((now - began) / 100) / 10,
		bytes: answer?.body == null ? 0 : Buffer.byteLength(answer.body),
		token: answer?.about?.token ?? null,
		ip: clientIp(serving, one),
		error: answer?.about?.error ?? null,
	};
}

/** What never became a request: nothing is known of it but where it came from. */
export function refusalLine(
	{ clock }: Pick<Serving, 'clock'>,
	{ remoteAddress }: Pick<Connection, 'remoteAddress'>,
	{ status, code }: { status: number; code: string },
): object {
	const time = `${formatDateTime(clock.now())}Z`;
	const ip = remoteAddress === null ? null : plainAddress(remoteAddress);
	const nothing = { id: null, method: null, path: null };
	return { time, ...nothing, status, ms: 0, bytes: 0, token: null, ip, error: code };
}

/** What nobody foresaw, with the stack; the answer says nothing of it. */
export function errorLine(
	{ clock }: Pick<Serving, 'clock'>,
	{ id, request }: Pick<One, 'id' | 'request'>,
	error: unknown,
): object {
	const { message, stack } = error instanceof Error ? error : new Error(String(error));
	const time = `${formatDateTime(clock.now())}Z`;
	return { time, level: 'error', id, method: request.method ?? '', error: message, stack };
}
