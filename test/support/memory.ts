import { readFileSync } from 'node:fs';

export function memoryOf(pid: number | undefined): { residentMb: number; peakMb: number } {
	try {
		const status = readFileSync(`/proc/${pid}/status`, 'latin1');
		const mb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1024;
		return { residentMb: mb('VmRSS'), peakMb: mb('VmHWM') };
	} catch {
		return { residentMb: 0, peakMb: 0 };
	}
}
