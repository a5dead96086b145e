const truths: ReadonlyMap<string, boolean> = new Map([
	['true', true],
	['yes', true],
	['on', true],
	['1', true],
	['false', false],
	['no', false],
	['off', false],
	['0', false],
]);

export function truthOf(text: string): boolean | null {
	return truths.get(text.trim().toLowerCase()) ?? null;
}
