/** Rows of an import that were checked where they were read, by the engine's own rules. */
import type { RowTexts } from './row-texts.js';

/**
 * Never from a wire: nothing is checked again. Numbered as `ImportBatch` is. `rows` are the engine's
 * (`engine/rules/checked-rows`), `variables` those of the columns.
 */
export interface CheckedBatch {
	first: number;
	variables: readonly string[];
	rows: RowTexts;
}
