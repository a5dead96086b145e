/** An import that is killed at many moments and goes on each time: no row is lost, none comes twice, none is told twice. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const hasStrace = spawnSync('strace', ['-V']).status === 0;
const kills = Number(process.env['MAILCTL_KILLS'] ?? 12);
const program = fileURLToPath(new URL('../../bin/mailctl.js', import.meta.url));

/** Above the size from which a thread reads. Of every ten rows one is no address and one is there already. */
function people(count: number): string {
	const rows = Array.from({ length: count }, (_, n) => {
		const number = (n * 7_919) % 1_000_003;
		if (n % 10 === 3) return `nobody ${number},Person\n`;
		return n % 10 === 7
			? `p${((n - 1) * 7_919) % 1_000_003}@example.org,Person\n`
			: `p${number}@example.org,Person ${n}\n`;
	});
	return `email,name\n${rows.join('')}`;
}

function place() {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-kill-'));
	const file = join(folder, 'people.csv');
	writeFileSync(file, people(40_000));
	const env = { PATH: process.env['PATH'], HOME: folder, MAILCTL_DB: join(folder, 'm.db') };
	const words = (...more: string[]) => [process.execPath, program, ...more];
	const run = ([command = '', ...rest]: string[]) => spawnSync(command, rest, { env, encoding: 'utf8' });
	run(words('engine', 'init', '-q'));
	run(words('lists', 'create', '--name', 'People', '--email-reason', 'asked', '-q'));
	const importing = words('subscribers', 'import', file, '-l', '1', '--batch-size', '500', '-o', 'json');
	return {
		run,
		importing,
		rejects: () => readFileSync(`${file}.rejects.csv`, 'utf8'),
		people: () => run(words('subscribers', 'export', '-l', '1')).stdout,
	};
}

/** A run killed behind its last commit has ended the import: the next is a new one, which finds all of them there. */
function settled(output: string) {
	const { created, unchanged, ...counts } = JSON.parse(output);
	return { ...counts, here: created + unchanged };
}

it.skipIf(!hasStrace)('ends as one run would, whatever kills it (needs strace)', () => {
	const once = place();
	const whole = once.run(once.importing);
	expect([whole.status, whole.stderr]).toEqual([
		9,
		expect.stringContaining('rejected rows and 4,000 duplicate rows are in'),
	]);

	const often = place();
	const calls = 'pwrite64,fdatasync,fsync,write';
	let killed = 0;
	let last: ReturnType<typeof often.run> | null = null;
	for (let round = 0; round < kills; round += 1) {
		const inject = `inject=${calls}:signal=KILL:when=${40 + round * 150}`;
		const words = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', inject, ...often.importing, '--resume'];
		last = often.run(words);
		if (last.status === 9) break;
		killed += 1;
	}
	// What has come to its end is not gone on with.
	if (last?.status !== 9) last = often.run([...often.importing, '--resume']);
	expect(killed).toBeGreaterThan(kills / 4);
	expect([last.status, settled(last.stdout)]).toEqual([9, settled(whole.stdout)]);
	expect(often.rejects()).toBe(once.rejects());
	expect(often.people()).toBe(once.people());
});
