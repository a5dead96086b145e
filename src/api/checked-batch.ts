/** Rows of an import that were checked where they were read, by the engine's own rules. */

/**
 * Never from a wire: nothing is checked again. Numbered as `ImportBatch` is. `marks` has a byte a row, `text` their
 * fields (see `engine/rules/checked-rows`), `variables` are those of the columns.
 */
export interface CheckedBatch {
	first: number;
	variables: readonly string[];
	marks: Uint8Array;
	text: string;
}
