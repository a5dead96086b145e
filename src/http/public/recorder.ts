/** Opens and clicks on their way to the store, while those who made them have their answers already. */

export interface Recorder {
	/** Does the work without anybody waiting for it; what it rejects with is told to `lost`. */
	later(work: () => Promise<void>): void;
	/** Resolves when nothing is on its way: before the store is closed. */
	settled(): Promise<void>;
}

/** More than a store that is locked for as long as it may be lets pile up at a thousand a second. */
const maxUnderWay = 20_000;

/** While too many wait for a store that does not answer, further ones are lost: memory is not without end. */
export function createRecorder(lost: (error: unknown) => void): Recorder {
	const underWay = new Set<Promise<void>>();
	return {
		later: (work) => {
			if (underWay.size >= maxUnderWay) {
				lost(new Error(`${maxUnderWay} opens and clicks wait to be recorded; another one is lost`));
				return;
			}
			const done: Promise<void> = work()
				.catch(lost)
				.finally(() => underWay.delete(done));
			underWay.add(done);
		},
		settled: async () => {
			while (underWay.size > 0) await Promise.all(underWay);
		},
	};
}
