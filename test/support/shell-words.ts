import { runProgram } from './run-program.js';

/** The words behind `mailctl` of a command line, as bash reads it. */
export function shellWords(line: string): string[] {
	const { stdout } = runProgram('bash', ['-c', `printf '%s\\0' ${line.trim()}`], {});
	return stdout.split('\0').slice(1, -1);
}
