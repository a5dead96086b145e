import { runProgram } from './run-program.js';

export function shellWords(line: string): string[] {
	const { stdout } = runProgram('bash', ['-c', `printf '%s\\0' ${line.trim()}`], {});
	return stdout.split('\0').slice(1, -1);
}
