// A connection whose campaigns a test can interrupt, delay or count.
import type { Campaigns } from '../../src/api/campaigns.js';
import { connect } from '../../src/cli/connect.js';
import type { Connect } from '../../src/cli/frame/connection.js';

export function connectWith(change: (campaigns: Campaigns) => Campaigns): Connect {
	return async (target, dependencies) => {
		const connection = await connect(target, dependencies);
		const { ext, ...rest } = await connection.api.capabilities();
		if (ext.campaigns === undefined) throw new Error('the engine has campaigns');
		const campaigns = change(ext.campaigns);
		const capabilities = async () => ({ ...rest, ext: { ...ext, campaigns } });
		return { ...connection, api: { ...connection.api, capabilities } };
	};
}
