/** Sends single mails with different content, as shops and forms do, and measures the memory of `serve`. */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import type { CountingSink } from './counting-sink.js';
import { memoryOf } from './memory.js';

interface Soaked {
	url: string;
	token: string;
	pid: number;
	sink: CountingSink;
}

interface SoakOptions {
	contents: number;
	clients: number;
	onSample?: (arrived: number, residentMb: number) => void;
}

export interface SoakResult {
	seconds: number;
	cpuSeconds: number;
	peakMb: number;
	endMb: number;
}

const stuckMs = 60_000;

export async function soak(
	{ url, token, pid, sink }: Soaked,
	{ contents, clients, onSample }: SoakOptions,
): Promise<SoakResult> {
	const agent = new Agent({ keepAlive: true, maxSockets: clients });
	const before = sink.received();
	const began = performance.now();
	const cpuBefore = cpuSecondsOf(pid);
	const watch = setInterval(() => onSample?.(sink.received() - before, memoryOf(pid).residentMb), 1000);
	let next = 0;
	const client = async () => {
		while (next < contents) {
			next += 1;
			await post({ url, token, agent }, orderMail(next));
		}
	};
	try {
		await Promise.all(Array.from({ length: clients }, client));
		await arrived(sink, before + contents);
		const { residentMb, peakMb } = memoryOf(pid);
		const cpuSeconds = cpuSecondsOf(pid) - cpuBefore;
		return {
			seconds: (performance.now() - began) / 1000,
			cpuSeconds,
			peakMb: Math.round(peakMb),
			endMb: Math.round(residentMb),
		};
	} finally {
		clearInterval(watch);
		agent.destroy();
	}
}

export async function arrived(sink: CountingSink, count: number): Promise<void> {
	let last = { received: sink.received(), at: performance.now() };
	while (last.received < count && performance.now() - last.at < stuckMs) {
		await new Promise((resolve) => setTimeout(resolve, 20));
		if (sink.received() > last.received) last = { received: sink.received(), at: performance.now() };
	}
	if (last.received !== count) throw new Error(`${last.received} mails have arrived instead of ${count}`);
}

function cpuSecondsOf(pid: number): number {
	const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
	return (Number(fields[11]) + Number(fields[12])) / 100;
}

function post(
	{ url, token, agent }: { url: string; token: string; agent: Agent },
	mail: object,
): Promise<void> {
	return new Promise((resolve, reject) => {
		const headers = { 'X-Secure-Token': token, 'Content-Type': 'application/json' };
		request(`${url}/message/send/`, { agent, method: 'POST', headers }, (answer) => {
			let said = '';
			answer
				.setEncoding('utf8')
				.on('data', (chunk) => {
					said += chunk;
				})
				.on('end', () =>
					answer.statusCode === 200
						? resolve()
						: reject(new Error(`a send was answered with ${answer.statusCode}: ${said}`)),
				);
		})
			.on('error', reject)
			.end(JSON.stringify(mail));
	});
}

export function orderMail(number: number) {
	const of = (kind: string, at: number) =>
		`${kind}${((number * 7_919 + at) * 2_654_435_761) % 4_294_967_291}`;
	const style = `body{margin:0;font:16px Arial,sans-serif}p{color:#333;margin:0 0 12px}a{color:#0645ad}
.head{background:#f4f4f4;padding:16px}.order{border:1px solid #ddd;width:100%}.order td{padding:4px 8px}
.foot{font-size:12px;color:#777}@media(max-width:600px){.order td{display:block}}`;
	const links = Array.from(
		{ length: 10 },
		(
			_,
			at,
		) => `<tr><td><a href="https://shop.example.org/${of('item', at)}?order=${number}">Item ${of('', at)}</a></td>
<td class="price">${at + 1} × ${number % 97}.00</td></tr>`,
	);
	const prose = Array.from(
		{ length: 25 },
		(_, at) =>
			`<p>Dear #name#, parcel ${of('', at)} with ${of('thing-', at + 99)} has left the store for you today. It needs two days and a little luck with the weather, and the carrier calls before it comes. Keep number ${of('KEEP', at)} until all of it is with you: returns are asked for it, and so are the people at the desk.</p>`,
	);
	return {
		from: 'desk@example.org',
		to: [`reader${number}@example.org`],
		subject: `Your order ${number}`,
		html_body: `<html><head><style>${style}</style></head><body><div class="head">Order ${number}</div>
<table class="order">${links.join('\n')}</table>${prose.join('\n')}<p class="foot">The shop</p></body></html>`,
		context: { name: `Reader ${number}` },
	};
}
