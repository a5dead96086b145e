/** What a word has to look like to be an id of a service. Pure. */

/** A number from 1, as it is written; none so long that digits would be lost. */
export function isRecordId(text: string): boolean {
	return /^[1-9]\d{0,14}$/.test(text);
}

/** Of any version, in either case. */
export function isUuid(text: string): boolean {
	return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
