/** A worker on a memory queue with test-sized patience. */
import { systemClock } from '../../src/api/datetime.js';
import { createPool, type PoolOptions, type SmtpPool } from '../../src/delivery/pool.js';
import type { SmtpSettings, SmtpTimeouts } from '../../src/delivery/settings.js';
import { createWorker, type Worker, type WorkerOptions } from '../../src/delivery/worker.js';
import { type MemoryQueue, plainContents } from './memory-queue.js';

export function plainSettings(port: number, extra: Partial<SmtpSettings> = {}): SmtpSettings {
	return {
		host: '127.0.0.1',
		port,
		security: 'opportunistic',
		user: null,
		password: null,
		name: 'client.test',
		ca: null,
		...extra,
	};
}

export const shortTimeouts: SmtpTimeouts = {
	connect: 1_000,
	greeting: 300,
	command: 300,
	data: 300,
	body: 300,
	answer: 300,
};

export function testPool(port: number, options: Partial<PoolOptions> = {}): SmtpPool {
	return createPool({ settings: plainSettings(port), timeouts: shortTimeouts, ...options });
}

export function testWorker(
	memory: MemoryQueue,
	pool: SmtpPool,
	options: Partial<WorkerOptions> = {},
): Worker {
	return createWorker({
		queue: memory.queue,
		reads: memory.reads,
		contents: plainContents,
		pool,
		clock: systemClock,
		owner: 'test',
		publicUrl: null,
		keyring: null,
		random: () => 0.5,
		...options,
	});
}
