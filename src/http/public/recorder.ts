/** Opens and clicks on their way to the store, while those who made them have their answers already. */

export interface Recorder {
	/** Does the work without anybody waiting for it, at the end of the turn; what it rejects with is told to `lost`. */
	later(work: () => Promise<void>): void;
	/** Resolves when nothing is on its way: before the store is closed. */
	settled(): Promise<void>;
}

/** More than a store that is locked for as long as it may be lets pile up at a thousand a second. */
const maxUnderWay = 20_000;

/** While too many wait for a store that does not answer, further ones are lost: memory is not without end. */
export function createRecorder(lost: (error: unknown) => void): Recorder {
	let waiting: (() => Promise<void>)[] = [];
	let underWay = 0;
	let idle: (() => void)[] = [];
	const finish = () => {
		underWay -= 1;
		if (underWay > 0) return;
		for (const resolve of idle) resolve();
		idle = [];
	};
	const fail = (error: unknown) => {
		lost(error);
		finish();
	};
	const begin = () => {
		const works = waiting;
		waiting = [];
		for (const work of works) work().then(finish, fail);
	};
	return {
		later: (work) => {
			if (underWay >= maxUnderWay) {
				lost(new Error(`${maxUnderWay} opens and clicks wait to be recorded; another one is lost`));
				return;
			}
			underWay += 1;
			if (waiting.length === 0) setImmediate(begin);
			waiting.push(work);
		},
		settled: () =>
			new Promise((resolve) => {
				if (underWay === 0) resolve();
				else idle.push(resolve);
			}),
	};
}
