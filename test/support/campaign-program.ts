/**
 * Puts recipients into a campaign, as a process of its own, to be killed: `node campaign-program.mjs DATABASE ROWS SIZE [STARTS]`,
 * which then releases them for that time, in microseconds.
 * Begins one batch before where the campaign stands, as whoever never saw the last answer does. Every tenth address is
 * that of the row before it.
 */
import { randomUUID } from 'node:crypto';
import { systemClock } from '../../src/api/datetime.js';
import { contentSha256 } from '../../src/content/hash.js';
import { openStore } from '../../src/store/open.js';

const [path = '', rows = '0', size = '1', starts = ''] = process.argv.slice(2);
const store = await openStore(path, { clock: systemClock, mode: 'existing' });
const now = systemClock.now();
const content = { subject: 'Hi', text: 'Hello', html: null, disable_inline: true };
const opened = await store.writes.openCampaign({
	id: randomUUID(),
	key: 'job',
	spec: { from: 'news@example.com', type: 'BULK', subject: 'Hi', text_body: 'Hello' },
	strict_vars: false,
	submission: {
		id: randomUUID(),
		type: 'BULK',
		envelope: { from: 'news@example.com', reply_to: [], cc: [], bcc: [], headers: {} },
		from_key: 'news@example.com',
		tag: null,
		content,
		content_sha256: contentSha256(content),
		variables: [],
		context: {},
		list_id: null,
		now,
	},
	...(starts !== '' && {
		timing: { starts_at: Number(starts), window: '09:00-18:00', time_zone: 'Europe/Oslo' },
	}),
	now,
});
if (opened.kind !== 'opened') throw new Error(`not opened: ${JSON.stringify(opened)}`);
const { id, position } = opened.session;
for (let first = Math.max(0, position - Number(size)); first < Number(rows); first += Number(size)) {
	const batch = Array.from({ length: Number(size) }, (_, index) => {
		const row = first + index;
		const to = `r${row % 10 === 9 ? row - 1 : row}@example.net`;
		return { kind: 'recipient', to, to_key: to, context: {} } as const;
	});
	const outcome = await store.writes.putCampaignBatch({ campaign: id, first, rows: batch, now });
	if (outcome.kind === 'closed' && starts !== '') break;
	if (outcome.kind !== 'acknowledged') throw new Error(`row ${first}: ${JSON.stringify(outcome)}`);
}
if (starts !== '') await store.writes.releaseCampaign({ campaign: id, expect_count: 900, now });
await store.close();
process.stdout.write(`${id}\n`);
