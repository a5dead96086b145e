/** One thread that inlines CSS, started when it is first needed and again after it had to be ended. */
import type { Worker } from 'node:worker_threads';
import type { InlineCss } from '../content/types.js';
import { spawnThread } from './spawn.js';

export interface InlineMessage {
	html: string;
}

export type InlineAnswer =
	| { kind: 'ready' }
	| { kind: 'inlined'; html: string }
	| { kind: 'failed'; why: string };

export interface Inliner {
	/** One document at a time, in order. Rejects past the deadline, and when the thread fails or is closed. */
	readonly inline: InlineCss;
	/** Ends the thread; what is under way rejects. */
	close(): Promise<void>;
}

/** Loading the inliner on a busy machine; the deadline of a document counts from there. */
const startMs = 30_000;
/** A document of 2 MiB and its tree; past this the thread dies instead of the process. */
const resourceLimits = { maxOldGenerationSizeMb: 512, stackSizeMb: 4 };

/** `deadlineMs` is for one document (5,000 is a good value). An idle thread does not keep the process alive. */
export function createInliner({ deadlineMs }: { deadlineMs: number }): Inliner {
	let worker: Worker | null = null;
	let last: Promise<unknown> = Promise.resolve();
	let isClosed = false;

	async function started(): Promise<Worker> {
		if (worker !== null) return worker;
		const fresh = spawnThread('inline', { resourceLimits });
		worker = fresh;
		fresh.on('error', () => forget(fresh));
		fresh.on('exit', () => forget(fresh));
		await ask(fresh, { timeoutMs: startMs, late: 'the inliner did not start' });
		return fresh;
	}

	function forget(gone: Worker): void {
		if (worker === gone) worker = null;
	}

	async function one(html: string): Promise<string> {
		if (isClosed) throw new Error('the inliner is closed');
		try {
			const thread = await started();
			const answer = ask(thread, { timeoutMs: deadlineMs, late: `it took longer than ${deadlineMs} ms` });
			thread.postMessage({ html } satisfies InlineMessage);
			return inlinedHtml(await answer);
		} catch (error) {
			await end();
			throw error;
		}
	}

	async function end(): Promise<void> {
		const ending = worker;
		worker = null;
		await ending?.terminate();
	}

	return {
		inline(html) {
			const answer = last.then(() => one(html));
			last = answer.catch(() => undefined);
			return answer;
		},
		async close() {
			isClosed = true;
			await end();
		},
	};
}

function inlinedHtml(answer: InlineAnswer): string {
	if (answer.kind === 'inlined') return answer.html;
	throw new Error(answer.kind === 'failed' ? answer.why : 'the inliner answered out of turn');
}

/** The next message of the thread. While it is awaited, and only then, the thread keeps the process alive. */
function ask(
	worker: Worker,
	{ timeoutMs, late }: { timeoutMs: number; late: string },
): Promise<InlineAnswer> {
	return new Promise((resolve, reject) => {
		const settle = (outcome: () => void) => {
			clearTimeout(timer);
			worker.off('message', onMessage).off('error', onError).off('exit', onExit);
			worker.unref();
			outcome();
		};
		const onMessage = (answer: InlineAnswer) => settle(() => resolve(answer));
		const onError = (error: Error) => settle(() => reject(error));
		const onExit = () => settle(() => reject(new Error('the inliner ended')));
		const timer = setTimeout(() => settle(() => reject(new Error(late))), timeoutMs);
		worker.ref();
		worker.on('message', onMessage).on('error', onError).on('exit', onExit);
	});
}
