import { systemClock } from '../../src/api/datetime.js';
import type { ConnectDependencies } from '../../src/cli/frame/connection.js';

export function dependencies(more: Partial<ConnectDependencies> = {}): ConnectDependencies {
	return {
		clock: systemClock,
		role: 'cli',
		env: {},
		remote: { timeoutMs: 60_000, retries: 0, caCert: null, insecure: false, proxy: null },
		trace: () => {},
		onWait: null,
		warn: () => {},
		...more,
	};
}
