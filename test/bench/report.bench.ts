// A year's report of ten million events: from the daily figures, and counted from the events themselves.
import Database from 'better-sqlite3';
import { formatDateTime, microsPerSecond, systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import { send } from '../contract/store/fixture.js';
import { type Bench, median } from './bench.js';
import { newPlace } from './server.js';

const messages = 2_000_000;
const eventsAMessage = 5;
const days = 365;
const rounds = 21;
const microsADay = 86_400 * microsPerSecond;

export const bench: Bench = {
	subject: `${((messages * eventsAMessage) / 1e6).toFixed(0)}M events of ${days} days, median of ${rounds} reads`,
	run: async () => {
		const place = newPlace();
		try {
			const until = await fill(place.path);
			place.run('engine', 'check', '--repair', '-q');
			const ours = await fromFigures(place.path, until);
			const limit = fromEvents(place.path);
			return [
				{
					what: `report of ${days} days`,
					limit: 'counting the events',
					limitMedian: `${Math.round(limit)} ms`,
					oursMedian: `${ours.toFixed(2)} ms`,
					ratio: ours / limit,
					goal: '≤ 5 ms',
				},
			];
		} finally {
			place.remove();
		}
	},
};

/** Writes messages and their events past the program, a hundred times as fast; answers when the last was sent. */
async function fill(path: string): Promise<number> {
	const store = await openStore(path, { clock: systemClock, mode: 'existing' });
	await send(store, ['first@example.org']);
	await store.close();
	const until = systemClock.now();
	const db = new Database(path);
	db.pragma('synchronous = OFF');
	const numbers = (count: number) =>
		`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})`;
	const step = Math.floor((days * microsADay) / messages);
	db.exec(`
		INSERT INTO messages (uuid, submission_seq, lane, to_email, to_key, variables, state, due_at, created_at, sent_at)
		${numbers(messages)}
		SELECT printf('10000000-0000-4000-8000-%012d', i), s.seq, 0, 'p' || i || '@example.org', 'p' || i || '@example.org',
			'{}', 'sent', ${until} - i * ${step}, ${until} - i * ${step}, ${until} - i * ${step}
		FROM n, (SELECT min(seq) AS seq FROM submissions) s;
		INSERT INTO events (message_id, type, at, link, machine)
		${numbers(eventsAMessage)}
		SELECT m.id, iif(i < 3, 'OPENED', 'REDIRECTED'), m.sent_at + (i + 1) * 60000000, iif(i < 3, NULL, i), i = 2
		FROM messages m, n
		WHERE m.sent_at IS NOT NULL;
		INSERT INTO message_firsts (message_id, type, link, machine, first_at, count)
		SELECT message_id, type, coalesce(link, -1), machine, min(at), count(*)
		FROM events
		GROUP BY message_id, type, coalesce(link, -1), machine;
	`);
	db.close();
	return until;
}

async function fromFigures(path: string, until: number): Promise<number> {
	const store = await openStore(path, { clock: systemClock, mode: 'existing' });
	const day = (micros: number) => formatDateTime(micros).slice(0, 10);
	const range = { from: day(until - (days - 1) * microsADay), to: day(until) };
	const times: number[] = [];
	for (let round = 0; round < rounds; round++) {
		const began = performance.now();
		const { daily } = await store.reads.reportFigures({ ...range, campaign: null, tag: null, human: false });
		times.push(performance.now() - began);
		// What counts nothing is fast.
		if (daily.length < 3 * (days - 1)) throw new Error(`a report of ${daily.length} figures`);
	}
	await store.close();
	return median(times);
}

/** Once: it takes seconds. */
function fromEvents(path: string): number {
	const db = new Database(path, { readonly: true });
	const began = performance.now();
	db.prepare(
		`SELECT at / ${microsADay} AS day, type, count(DISTINCT message_id) AS count
		FROM events
		GROUP BY day, type`,
	).all();
	const took = performance.now() - began;
	db.close();
	return took;
}
