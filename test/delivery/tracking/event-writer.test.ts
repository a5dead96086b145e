import { expect, it } from 'vitest';
import { createEventWriter, type Happening, trackedEvent } from '../../../src/delivery/tracking/events.js';
import type { TrackedEvent } from '../../../src/store/store.js';

const event = (type: Happening['type'], message = 'm') =>
	trackedEvent({ message, type, at: 1, link: null, machine: false, visitor: { ip: null, userAgent: null } });

function written(answer: () => Promise<void> = async () => undefined) {
	const batches: (readonly TrackedEvent[])[] = [];
	const record = createEventWriter({
		recordEvents: ({ events }) => {
			batches.push(events);
			return answer();
		},
	});
	return { record, sizes: () => batches.map((events) => events.length) };
}

it('events of the same moment are recorded in one batch', async () => {
	const { record, sizes } = written();
	await Promise.all(['a', 'b', 'c'].map((message) => record(event('OPENED', message))));
	await record(event('REDIRECTED'));
	expect(sizes()).toEqual([3, 1]);
});

it('a batch has at most 200 events', async () => {
	const { record, sizes } = written();
	await Promise.all(Array.from({ length: 450 }, () => record(event('OPENED'))));
	expect(sizes()).toEqual([200, 200, 50]);
});

it('an unsubscription is written at once and alone', async () => {
	const { record, sizes } = written();
	const opened = record(event('OPENED'));
	const left = record(event('UNSUBSCRIBED'));
	expect(sizes()).toEqual([1]);
	await Promise.all([opened, left]);
	expect(sizes()).toEqual([1, 1]);
});

it('events are rejected while the store fails, and recorded when it works again', async () => {
	let isDown = true;
	const { record } = written(() => (isDown ? Promise.reject(new Error('disk full')) : Promise.resolve()));
	const outcomes = await Promise.allSettled([record(event('OPENED')), record(event('OPENED'))]);
	expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
	isDown = false;
	await expect(record(event('OPENED'))).resolves.toBeUndefined();
});
