/** A worker on a memory queue. */
import { systemClock } from '../../src/api/datetime.js';
import { createWorker, type Worker, type WorkerOptions } from '../../src/delivery/run.js';
import { type PoolOptions, SmtpPool } from '../../src/delivery/smtp/pool.js';
import type { SmtpSettings, SmtpTimeouts } from '../../src/delivery/smtp/settings.js';
import { type MemoryQueue, plainContents } from './memory-queue.js';
import type { FaultScript } from './smtp-fault.js';

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

const all = (ms: number): SmtpTimeouts => ({
	...{ connect: ms, greeting: ms, command: ms, data: ms, body: ms, answer: ms },
});
const timeoutAt: Readonly<Partial<Record<string, keyof SmtpTimeouts>>> = {
	...{ connect: 'greeting', EHLO: 'greeting', STARTTLS: 'greeting', AUTH: 'greeting' },
	...{ MAIL: 'command', RCPT: 'command', DATA: 'data', dot: 'answer' },
};

export function timeoutsFor({ at = {} }: FaultScript): SmtpTimeouts {
	const short = Object.entries(at).flatMap(([phase, fault]) => {
		const isWaited = 'hang' in fault || 'drip' in fault || 'halfClose' in fault || phase === 'STARTTLS';
		const timeout = timeoutAt[phase];
		return isWaited && timeout !== undefined ? [[timeout, 300]] : [];
	});
	return { ...all(60_000), ...Object.fromEntries(short) };
}

export function testPool(port: number, options: Partial<PoolOptions> = {}): SmtpPool {
	return new SmtpPool({ settings: plainSettings(port), timeouts: timeoutsFor({}), ...options });
}

export function testWorker(
	memory: MemoryQueue,
	pool: WorkerOptions['pool'],
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

export function endless(...given: Parameters<typeof testWorker>) {
	const control = new AbortController();
	const worker = testWorker(...given);
	const running = worker.run({ scope: null, until: 'aborted', signal: control.signal });
	const stop = () => {
		control.abort();
		return running;
	};
	return { stop, wake: worker.wake };
}
