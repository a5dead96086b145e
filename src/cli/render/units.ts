import type { CommonReply } from '../../api/campaigns.js';
import { type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import { clean } from './clean.js';
import { momentText } from './times.js';

export const mebibyte = 1024 ** 2;
export const gibibyte = 1024 ** 3;

export function sizeText(bytes: number): string {
	if (bytes >= gibibyte) return `${(bytes / gibibyte).toFixed(1)} GiB`;
	if (bytes >= mebibyte) return `${Math.round(bytes / mebibyte)} MiB`;
	return `${Math.ceil(bytes / 1024)} KiB`;
}

export function spanText(span: Micros): string {
	const seconds = Math.floor(Math.abs(span) / microsPerSecond);
	const units = [
		[microsPerDay / microsPerSecond, 'day'],
		[3_600, 'hour'],
		[60, 'minute'],
		[1, 'second'],
	] as const;
	const [size, name] = units.find(([one]) => seconds >= one) ?? [1, 'second'];
	return counted(Math.floor(seconds / size), name);
}

export function untilText(at: Micros, { now, zone }: { now: Micros; zone: string }): string {
	if (at <= now) return 'now';
	const left = at - now;
	return left > 3_600 * microsPerSecond
		? `at ${momentText(at, zone)}`
		: `in ${spanText(Math.max(left, microsPerSecond))}`;
}

/** Formats 10000 as `10,000`. Does not use `toLocaleString`, because its first call takes 9 ms. */
export function numberText(count: number): string {
	let text = String(count);
	const first = count < 0 ? 1 : 0;
	for (let at = text.length - 3; at > first; at -= 3) text = `${text.slice(0, at)},${text.slice(at)}`;
	return text;
}

export function shareText(percent: number): string {
	return `${percent.toFixed(2)} %`;
}

export function shareOf(value: unknown): string {
	const share = Number(value);
	return Number.isFinite(share) ? shareText(share) : `${clean(String(value))} %`;
}

export function counted(count: number, word: string, plural = `${word}s`): string {
	return `${numberText(count)} ${count === 1 ? word : plural}`;
}

export function attachmentLines(
	files: readonly { name: string; type: string; size: number }[] = [],
): string[] {
	const amount = (size: number) => (size < 1024 ? counted(size, 'byte') : sizeText(size));
	return files.map(({ name, type, size }) => `${name}  ${type}  ${amount(size)}`);
}

export function replyText({ state, reply, count }: CommonReply): string {
	return `${numberText(count)} ${state}: ${clean(reply)}`;
}
