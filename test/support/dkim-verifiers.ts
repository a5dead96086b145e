/** Independent verifiers of DKIM signatures; tests skip those that are not installed. */
import { join } from 'node:path';
import { runProgram, runs } from './run-program.js';

interface DkimVerifier {
	name: string;
	missing: string | null;
	verify(records: Readonly<Record<string, string>>, messages: readonly Buffer[]): boolean[];
}

const script = join(import.meta.dirname, 'dkim-verifier.py');
/** Debian's interpreter, because others do not see its packages. */
const python = '/usr/bin/python3';
const apart = ['unshare', '--net', '--mount', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])];

const works = ([command = '', ...rest]: readonly string[]) => runs(command, ...rest);

function run(verifier: string, command: readonly string[]): DkimVerifier['verify'] {
	return (records, messages) => {
		const [program = '', ...rest] = command;
		const input = JSON.stringify({
			verifier,
			records,
			messages: messages.map((message) => message.toString('base64')),
		});
		const { stdout, stderr } = runProgram(program, [...rest, script], { input });
		if (stdout === '') throw new Error(stderr);
		return JSON.parse(stdout);
	};
}

export const dkimVerifiers: readonly DkimVerifier[] = [
	{
		name: 'dkimpy',
		missing: works([python, '-c', 'import dkim, nacl']) ? null : 'python3-dkim',
		verify: run('dkimpy', [python]),
	},
	{
		name: 'OpenDKIM',
		missing: works([...apart, 'true'])
			? works(['sh', '-c', 'PATH=$PATH:/usr/sbin command -v opendkim-testmsg'])
				? null
				: 'opendkim-tools'
			: 'namespaces (unshare)',
		verify: run('opendkim', [...apart, python]),
	},
];
