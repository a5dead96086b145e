import type { ImportCounts } from './capabilities.js';

export const noImportCounts: Readonly<ImportCounts> = {
	created: 0,
	updated: 0,
	unchanged: 0,
	duplicate: 0,
	rejected: 0,
};

export function addImportCounts(a: ImportCounts, b: ImportCounts): ImportCounts {
	const other_reasons = (a.other_reasons ?? 0) + (b.other_reasons ?? 0);
	return {
		created: a.created + b.created,
		updated: a.updated + b.updated,
		unchanged: a.unchanged + b.unchanged,
		duplicate: a.duplicate + b.duplicate,
		rejected: a.rejected + b.rejected,
		...(other_reasons > 0 && { other_reasons }),
	};
}

export interface DeliveryCounts {
	sent: number;
	deferred: number;
	bounced: number;
	failed: number;
	uncertain: number;
	canceled: number;
}

export function noDeliveries(): DeliveryCounts {
	return { sent: 0, deferred: 0, bounced: 0, failed: 0, uncertain: 0, canceled: 0 };
}

export function percentOf(part: number, whole: number): number {
	return whole === 0 ? 0 : Math.round((10_000 * part) / whole) / 100;
}
