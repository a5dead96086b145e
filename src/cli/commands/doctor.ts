import { columns, groups } from '../doctor/checks.js';
import { command } from '../frame/command.js';

const doctor = command({
	name: 'doctor',
	summary: 'what is wrong with this set-up, and the fix',
	description:
		'Looks at the configuration, and then at the target. Of a database: the file itself (one of up to 128 MiB is read whole), the settings, the mail server, the queue, webhooks, and what DNS says of the sender domains (DKIM, SPF, DMARC). Of a deployment: whether it is reached, its certificate, the token, its clock. It changes nothing and sends no mail. ' +
		'A "problem" is broken, or will break; a "warning" works, but deserves a look. Problems are exit 11; warnings are with --strict.',
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
