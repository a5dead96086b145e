/** The checks of a database of this machine and of what it needs to send. */
import type { Target } from '../connection.js';
import type { CommandContext } from '../context.js';
import { configChecks } from './checks/config.js';
import { databaseChecks } from './checks/database.js';
import { dnsChecks } from './checks/dns.js';
import { machineChecks } from './checks/machine.js';
import { publicUrlChecks } from './checks/public-url.js';
import { queueChecks } from './checks/queue.js';
import { settingsChecks } from './checks/settings.js';
import { smtpChecks } from './checks/smtp.js';
import { webhookChecks } from './checks/webhooks.js';
import { lookingInto } from './looking.js';
import type { Check, Surroundings } from './model.js';
import { createNames } from './names.js';

/** What the options of the command come to. */
export interface LocalOptions {
	surroundings: Surroundings;
	nameServer: string | undefined;
}

/** Opens the database to look at it; `close` when the checks are done. Throws `UnsupportedDatabase`. */
export async function localChecks(
	cx: CommandContext,
	target: Extract<Target, { kind: 'local' }>,
	{ surroundings, nameServer }: LocalOptions,
): Promise<{ checks: Check[]; close(): Promise<void> }> {
	const names = createNames(nameServer);
	const { inspectLocal } = await import('../connect/doctor.js');
	const found = inspectLocal(target.url, { clock: cx.clock, trace: tracer(cx) });
	const { clock } = cx;
	const look = lookingInto(found);
	const secrets = [found.path, `${found.path}.token`];
	return {
		checks: [
			...machineChecks(),
			...configChecks({ paths: cx.paths, secrets }),
			...databaseChecks(found, clock, surroundings),
			...settingsChecks(look, surroundings),
			...smtpChecks(look, clock, surroundings),
			...queueChecks(look, clock, surroundings),
			...webhookChecks(look, clock, surroundings),
			...dnsChecks(look, names, surroundings),
			...publicUrlChecks(look, surroundings),
		],
		close: async () => {
			names.close();
			if (found.kind === 'open') found.database.close();
		},
	};
}

function tracer({ io, settings }: CommandContext): (line: string) => void {
	return (line) => {
		if (settings.debug.value) void io.stderr.write(`${line}\n`);
	};
}
