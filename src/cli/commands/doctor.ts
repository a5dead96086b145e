import { columns, groups } from '../doctor/checks.js';
import { command } from '../frame/command.js';

const doctor = command({
	name: 'doctor',
	summary: 'what is wrong with this set-up, and the fix',
	description:
		'Checks the configuration, and then the target. For a local database: the file (read whole up to 128 MiB), settings, mail server, queue and webhooks. It also checks the DNS of the sender domains (DKIM, SPF, DMARC). For a remote service: connection, certificate, token and clock. It changes nothing and sends no mail. ' +
		'A "problem" is broken or will break: exit 11. A "warning" works but needs attention: exit 11 with --strict.',
	options: {
		offline: { kind: 'flag', summary: 'ask no other machine: no mail server, no DNS, no deployment' },
		full: { kind: 'flag', summary: 'read the whole database, however large, and compare its indexes' },
		strict: { kind: 'flag', summary: 'warnings are exit 11 too' },
		only: {
			kind: 'choices',
			choices: groups,
			summary: 'these groups of checks: one, or several with commas',
		},
		skip: { kind: 'choices', choices: groups, summary: 'all but these groups' },
		nameServer: {
			kind: 'text',
			placeholder: 'IP[:PORT]',
			summary: 'the DNS server to ask, such as that of the domain itself',
		},
	},
	columns,
	needsNoConfig: true,
	output: 'an array of {"check", "level": "ok" | "warning" | "problem" | "skipped", "message", "fix"}',
	exits: [11, 12],
	examples: [
		'mailctl doctor',
		'mailctl doctor --offline -o json',
		'mailctl doctor --only database --full',
		'mailctl doctor --only queue,webhooks',
		'mailctl doctor --skip dns --deadline 20s',
	],
	run: async (cx, { options }) => {
		const { doctorCommand } = await import('../doctor/command.js');
		return doctorCommand(cx, options);
	},
});

export { doctor as command };
