/** A service that answers raw requests from a table, and records the requests. */
import type { WireRequest, WireResponse } from '../../src/api/api.js';
import type { Connect, Target } from '../../src/cli/frame/connection.js';
import { connectTo } from './fake-deployment.js';

export interface Answer {
	status?: number;
	headers?: Readonly<Record<string, string>>;
	body?: unknown;
}

export interface Wire {
	connect: Connect;
	asked: WireRequest[];
	targets: Target[];
}

export function wireOf(answer: (request: WireRequest) => Answer | Error): Wire {
	const asked: WireRequest[] = [];
	const targets: Target[] = [];
	const connect: Connect = async (target, dependencies) => {
		targets.push(target);
		return {
			...(await connectTo([])(target, dependencies)),
			exchange: async (request) => {
				asked.push(request);
				const given = answer(request);
				if (given instanceof Error) throw given;
				return responseOf(given);
			},
		};
	};
	return { connect, asked, targets };
}

function responseOf({ status = 200, headers = {}, body = '' }: Answer): WireResponse {
	const text = typeof body === 'string' ? body : JSON.stringify(body);
	return { status, headers, body: new TextEncoder().encode(text), durationMs: 1 };
}
