import { columns, groups } from '../doctor/checks.js';
import { command } from '../frame/command.js';

const doctor = command({
	name: 'doctor',
	summary: 'find problems with this set-up',
	description:
		'Checks the configuration, then the target. For a database, checks the file, settings, mail server, queue, webhooks ' +
		'and the DNS of sender domains. For a service, checks connection, certificate, token and clock. Changes nothing ' +
		'and sends no mail. Exits with 11 if it finds a "problem". Only --full looks for damage ' +
		'in a database above 128 MiB.',
	options: {
		offline: { kind: 'flag', summary: 'contact no mail server, name server or service' },
		full: { kind: 'flag', summary: 'read the whole database and check its indexes' },
		strict: { kind: 'flag', summary: 'exit with 11 for warnings too' },
		only: { kind: 'choices', choices: groups, summary: 'run only these groups of checks, such as queue,dns' },
		skip: { kind: 'choices', choices: groups, summary: 'leave these groups of checks out' },
		nameServer: { kind: 'text', placeholder: 'IP[:PORT]', summary: 'ask this DNS server' },
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
