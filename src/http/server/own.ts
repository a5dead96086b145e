/** What every deployment of ours answers beside the API: who it is, how it is, what it can do. */
import type { HttpResponse } from '../messages.js';
import { metricsPath, openPaths } from '../routes.js';
import { methodNotAllowed } from './access.js';
import { asApiError, empty, json } from './answers.js';
import type { OwnPath } from './match.js';
import type { Gauges, Metrics } from './metrics.js';

export interface OwnOptions {
	version: string;
	extensions: readonly string[];
	metrics: Metrics;
	ready?(): Promise<string | null>;
	gauges?(): Promise<Gauges>;
	/** Throws for who may not see figures. */
	authorize(): Promise<void>;
}

/** One of our own paths. Throws `method_not_allowed` for anything but looking. */
export async function answerOwn(options: OwnOptions, path: OwnPath, method: string): Promise<HttpResponse> {
	if (path === metricsPath) await options.authorize();
	if (method === 'OPTIONS') return empty(204, { Allow: 'GET, HEAD, OPTIONS' });
	if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method);
	switch (path) {
		case openPaths.root: {
			const { version, extensions } = options;
			return json(200, { service: 'mailctl', version, extensions });
		}
		case openPaths.health:
			return json(200, { status: 'ok' });
		case openPaths.ready:
			return readiness(options);
		case openPaths.openapi: {
			const { describeApi } = await import('./openapi.js');
			return json(200, describeApi(options.version));
		}
		case metricsPath:
			return figures(options);
	}
}

/** 503 with the reason is what a load balancer wants; an error of the check is a reason too. */
async function readiness({ ready }: OwnOptions): Promise<HttpResponse> {
	const reason = await Promise.resolve(ready?.() ?? null).catch(
		(error: unknown) => asApiError(error)?.message ?? 'The database does not answer.',
	);
	return reason === null
		? json(200, { status: 'ok' })
		: json(503, { status: 'unavailable', detail: reason }, { 'Retry-After': '1' });
}

async function figures({ metrics, gauges }: OwnOptions): Promise<HttpResponse> {
	const body = metrics.render(await gauges?.());
	return { ...json(200, ''), headers: { ...json(200, '').headers, 'Content-Type': metricsType }, body };
}

const metricsType = 'text/plain; version=0.0.4; charset=utf-8';
