import { systemClock } from '../../../src/api/datetime.js';
import { openStore } from '../../../src/store/open.js';

const [path = '', times = '1', together = '1'] = process.argv.slice(2);
const store = await openStore(path, { clock: systemClock, mode: 'create' });
for (let time = 0; time < Number(times); time++) {
	const input = { name: 'n', email_reason: 'r' };
	await Promise.all(
		Array.from({ length: Number(together) }, () =>
			store.writes.createList({ input, now: systemClock.now() }),
		),
	);
}
await store.close();
