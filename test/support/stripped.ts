/** The engine without its extensions, like a service that has only the documented API. */
import type { Api } from '../../src/api/api.js';
import type { Extensions } from '../../src/api/capabilities.js';
import { connect } from '../../src/cli/connect.js';
import type { Connect, Connection } from '../../src/cli/frame/connection.js';

interface StrippedOptions {
	keep?: readonly (keyof Extensions)[];
	change?: (api: Api) => Api;
}

export function stripped({ keep = [], change = (api) => api }: StrippedOptions = {}): Connect {
	return async (target, dependencies): Promise<Connection> => {
		const connection = await connect(target, dependencies);
		const { capabilities, ...rest } = connection.api;
		const api: Api = {
			...rest,
			capabilities: async () => {
				const { ext } = await capabilities();
				const kept = Object.fromEntries(keep.map((name) => [name, ext[name]]));
				return {
					service: keep.length === 0 ? 'unknown' : 'mailctl',
					idempotentSend: keep.length > 0,
					ext: kept,
				};
			},
		};
		return { ...connection, api: change(api), local: null };
	};
}
