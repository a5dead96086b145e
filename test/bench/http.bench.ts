// The server compared with bare node:http and with the disk; the measurements alternate.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/api/datetime.js';
import { signToken } from '../../src/delivery/tracking/tokens.js';
import { openStore } from '../../src/store/open.js';
import { send } from '../contract/store/fixture.js';
import { type Bench, type BenchRow, median, skippedRow } from './bench.js';
import { singleCommits, syncMs } from './disk.js';
import {
	bareServer,
	newPlace,
	type Place,
	peopleFile,
	type Running,
	serve,
	trackingKeyring,
} from './server.js';
import { hasWrk, requestsPerSecond } from './wrk.js';

const rounds = Number(process.env['ROUNDS'] ?? 7);
const seconds = 2;
const nothing = '(q, r) => { r.writeHead(200, { "Content-Length": 0 }); r.end(); }';
const gif = `(q, r) => {
	const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');
	r.writeHead(200, { 'Content-Type': 'image/gif', 'Content-Length': gif.length, 'Cache-Control': 'no-store' });
	r.end(gif);
}`;

export const bench: Bench = {
	subject: `requests a second, median of ${rounds} × ${seconds} s in turn; ROUNDS`,
	run: async () => {
		if (!hasWrk)
			return ['page of 100 subscribers', 'POST subscriber', 'pixel'].map((what) =>
				skippedRow(what, 'wrk is missing'),
			);
		const place = newPlace();
		place.run('lists', 'create', '--name', 'Written', '--email-reason', 'asked', '-q');
		place.run('subscribers', 'import', peopleFile(place.folder, 'a', 100_000), '-l', '1', '-q');
		const tokens = await pixelTokens(place);
		const server = await serve(place, '--no-worker');
		try {
			return [await pages(server), await posts(server, place), await pixels(server, { place, tokens })];
		} finally {
			await server.stop();
			place.remove();
		}
	},
};

async function pages({ url, token }: Running): Promise<BenchRow> {
	const bare = await bareServer(nothing);
	const headers = { 'X-Secure-Token': token };
	const path = '/sub/lists/1/subscribers/?page=3';
	const pagesOf = (base: string) =>
		requestsPerSecond({ connections: 16, seconds, headers, url: `${base}${path}` });
	const samples = await inTurn(
		() => pagesOf(bare.url),
		() => pagesOf(url),
	);
	await bare.stop();
	const limit = 'node:http answering nothing';
	return row('page of 100 subscribers', limit, samples, '≥ 0.06');
}

async function posts({ url, token }: Running, { folder }: Place): Promise<BenchRow> {
	const headers = { 'X-Secure-Token': token, 'Content-Type': 'application/json' };
	const waits: number[] = [];
	let round = 0;
	const postsTo = (base: string) => {
		round += 1;
		const lua = `
local id = 0
request = function()
	id = id + 1
	return wrk.format('POST', nil, nil, '{"email":"w${round}-' .. id .. '@example.org"}')
end`;
		return requestsPerSecond({
			url: `${base}/sub/lists/2/subscribers/`,
			connections: 32,
			seconds,
			headers,
			script: { folder, lua },
		});
	};
	const samples = await inTurn(
		async () => {
			waits.push(syncMs(folder));
			return singleCommits(folder, seconds);
		},
		() => postsTo(url),
	);
	const limit = `single FULL commits (fdatasync ${median(waits).toFixed(2)} ms)`;
	return row('POST subscriber, 32 clients', limit, samples, '≥ 1.5');
}

async function pixels(
	{ url }: Running,
	{ place, tokens }: { place: Place; tokens: readonly string[] },
): Promise<BenchRow> {
	const bare = await bareServer(gif);
	const file = join(place.folder, 'tokens');
	writeFileSync(file, tokens.join('\n'));
	const lua = `
local paths = {}
for token in io.lines('${file}') do paths[#paths + 1] = '/o/' .. token .. '.gif' end
local at = 0
request = function()
	at = at % #paths + 1
	return wrk.format('GET', paths[at])
end`;
	const load = { connections: 16, seconds, script: { folder: place.folder, lua } };
	const samples = await inTurn(
		() => requestsPerSecond({ ...load, url: bare.url }),
		() => requestsPerSecond({ ...load, url }),
	);
	await bare.stop();
	const limit = 'node:http answering the GIF';
	return row('pixel with its event', limit, samples, '≥ 0.6');
}

async function pixelTokens(place: Place): Promise<string[]> {
	const store = await openStore(place.path, { clock: systemClock, mode: 'existing' });
	const keyring = await trackingKeyring(store);
	const addresses = Array.from({ length: 1_000 }, (_, i) => `m${i}@example.org`);
	const { answer } = await send(store, addresses);
	await store.close();
	return answer.messages.map(({ id }) => signToken(keyring, 'o', id));
}

interface Samples {
	limit: number[];
	ours: number[];
}

async function inTurn(
	limit: () => number | Promise<number>,
	ours: () => number | Promise<number>,
): Promise<Samples> {
	const samples: Samples = { limit: [], ours: [] };
	for (let round = 0; round < rounds; round++) {
		samples.limit.push(await limit());
		samples.ours.push(await ours());
	}
	return samples;
}

function row(what: string, limit: string, samples: Samples, goal: string): BenchRow {
	const rate = (values: readonly number[]) => `${Math.round(median(values))}/s`;
	return {
		what,
		limit,
		limitMedian: rate(samples.limit),
		oursMedian: rate(samples.ours),
		ratio: median(samples.ours.map((value, at) => value / (samples.limit[at] ?? Number.NaN))),
		goal,
	};
}
