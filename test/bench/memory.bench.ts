// Resident memory of `serve` while every mail has different content.
import { startCountingSink } from '../support/counting-sink.js';
import { type SoakResult, soak } from '../support/soak.js';
import type { Bench, BenchRow } from './bench.js';
import { newPlace, serve } from './server.js';

const contents = Number(process.env['CONTENTS'] ?? 30_000);
const clients = Number(process.env['CLIENTS'] ?? 8);
const goalMb = 250;

export const bench: Bench = {
	subject: `resident memory of serve, ${contents} mails of 10 KB with a content each, ${clients} clients; CONTENTS CLIENTS`,
	run: async () => {
		const place = newPlace();
		const sink = await startCountingSink();
		place.run('engine', 'init', '--smtp', `smtp://127.0.0.1:${sink.port}`, '-q');
		place.run('engine', 'settings', 'set', 'public_url', 'https://mail.example.org', '-q');
		const server = await serve(place);
		try {
			if (server.child.pid === undefined) throw new Error('serve did not start');
			const watched = { url: server.url, token: server.token, pid: server.child.pid, sink };
			return [row(await soak(watched, { contents, clients, onSample: tell }))];
		} finally {
			await server.stop();
			sink.close();
			place.remove();
		}
	},
};

function tell(arrived: number, residentMb: number): void {
	if (process.env['SAMPLES'] !== undefined) process.stdout.write(`${arrived}\t${residentMb} MB\n`);
}

function row({ seconds, cpuSeconds, peakMb, endMb }: SoakResult): BenchRow {
	const cpu = ((cpuSeconds * 1000) / contents).toFixed(2);
	return {
		what: `peak memory, ${Math.round(contents / seconds)} mails/s, ${cpu} ms CPU each, at the end ${endMb} MB`,
		limit: '',
		limitMedian: `${goalMb} MB`,
		oursMedian: `${peakMb} MB`,
		ratio: peakMb / goalMb,
		goal: '≤ 1',
	};
}
