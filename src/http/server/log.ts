/** One line a request: who, what, how it went. No token, no query, no body. */
import { formatDateTime } from '../../api/datetime.js';
import type { HttpResponse } from '../messages.js';
import type { One, Serving } from './listen.js';
import { clientIp } from './serve.js';

/** `status` is null when the client left before it was asked what it wanted, 499 when it left before the answer. */
export function logLine(
	serving: Serving,
	one: One,
	{ id, began, answer }: { id: string; began: number; answer: HttpResponse | null },
): object {
	const now = serving.clock.now();
	return {
		time: `${formatDateTime(now)}Z`,
		id,
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
