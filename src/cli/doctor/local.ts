/** The checks of a database of this machine and of what it needs to send. */
import type { Target } from '../connection.js';
import type { CommandContext } from '../context.js';
import { configChecks } from './checks/config.js';
import { databaseChecks } from './checks/database.js';
import { machineChecks } from './checks/machine.js';
import type { Check, Surroundings } from './model.js';

export interface LocalOptions {
	surroundings: Surroundings;
	nameServer: string | undefined;
}

/** Opens the database to look at it; `close` when the checks are done. Throws `UnsupportedDatabase`. */
export async function localChecks(
	cx: CommandContext,
	target: Extract<Target, { kind: 'local' }>,
	{ surroundings }: LocalOptions,
): Promise<{ checks: Check[]; close(): Promise<void> }> {
	const { inspectLocal } = await import('../connect/doctor.js');
	const found = inspectLocal(target.url, { clock: cx.clock, trace: tracer(cx) });
	const secrets = [found.path, `${found.path}.token`];
	return {
		checks: [
			...machineChecks(),
			...configChecks({ paths: cx.paths, secrets }),
			...databaseChecks(found, cx.clock, surroundings),
		],
		close: async () => {
			if (found.kind === 'open') found.database.close();
		},
	};
}

function tracer({ io, settings }: CommandContext): (line: string) => void {
	return (line) => {
		if (settings.debug.value) void io.stderr.write(`${line}\n`);
	};
}
