interface GroupOptions<Item, Result> {
	/** A write starts at once when this many items wait, and takes at most this many. */
	size: number;
	/** How long an item waits for others. 0: until the end of this turn of the event loop. */
	ms: number;
	isParallel?: boolean;
	/** If `write` rejects, `Groups` passes the same items again, even if `write` has stored some of them. */
	write(items: readonly Item[]): Promise<readonly Result[]>;
	written(item: Item, result: Result | undefined): void;
	onFault(error: unknown): void;
}

/** Writes items in groups, because each write costs a commit. Waiting items are only in memory: flush at the end. */
export class Groups<Item, Result> {
	readonly #options: GroupOptions<Item, Result>;
	#waiting: Item[] = [];
	readonly #writes = new Set<Promise<void>>();
	#underWay = 0;
	#timer: NodeJS.Timeout | null = null;

	constructor(options: GroupOptions<Item, Result>) {
		this.#options = options;
	}

	get unwritten(): number {
		return this.#waiting.length + this.#underWay;
	}

	push(item: Item): void {
		const { size, ms } = this.#options;
		this.#waiting.push(item);
		if (ms === 0) {
			if (this.#waiting.length === 1) queueMicrotask(() => void this.#writeDue());
		} else if (this.#waiting.length === size) void this.#writeDue();
		else this.#startTimer(ms);
	}

	async flush(): Promise<void> {
		this.#stopTimer();
		while (this.unwritten > 0) await this.#write();
	}

	async #writeDue(): Promise<void> {
		this.#stopTimer();
		const { size, ms, onFault } = this.#options;
		try {
			if (this.#waiting.length > 0) await this.#write();
			while (this.#waiting.length >= size) await this.#write();
			if (this.#waiting.length > 0 && ms > 0) this.#startTimer(ms);
		} catch (error) {
			onFault(error);
		}
	}

	#write(): Promise<void> {
		const [running] = this.#writes;
		const mayStart = this.#options.isParallel === true && this.#waiting.length > 0;
		if (running !== undefined && !mayStart) return running;
		const write = this.#writeGroup().finally(() => this.#writes.delete(write));
		this.#writes.add(write);
		return write;
	}

	async #writeGroup(): Promise<void> {
		const { size, write, written } = this.#options;
		const group = this.#waiting.splice(0, size);
		this.#underWay += group.length;
		let results: readonly Result[];
		try {
			results = await write(group);
		} catch (error) {
			this.#waiting.unshift(...group);
			throw error;
		} finally {
			this.#underWay -= group.length;
		}
		for (const [at, item] of group.entries()) written(item, results[at]);
	}

	#startTimer(ms: number): void {
		this.#timer ??= setTimeout(() => void this.#writeDue(), ms);
	}

	#stopTimer(): void {
		if (this.#timer !== null) clearTimeout(this.#timer);
		this.#timer = null;
	}
}
