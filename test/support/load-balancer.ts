/** Runs HAProxy and nginx with the files of `packaging/cluster`; only addresses and folders are replaced. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isInstalled } from './run-program.js';

const files = join(import.meta.dirname, '../../packaging/cluster');

interface Program {
	file: string;
	listens: string;
	settle(text: string, folder: string): string;
	words(file: string, folder: string): readonly string[];
	checks: readonly string[];
}

const programs = {
	haproxy: {
		file: 'haproxy.cfg',
		listens: 'bind :80',
		settle: (text) => text,
		words: (file) => ['-db', '-f', file],
		checks: ['-c'],
	},
	nginx: {
		file: 'nginx.conf',
		listens: 'listen 80',
		settle: (text, folder) => {
			const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
			const temporary = kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};`).join('\n');
			return text.replace('http {', `http {\n${temporary}`);
		},
		words: (file, folder) => [
			...['-c', file, '-p', folder, '-e', 'stderr'],
			...['-g', `daemon off; pid ${folder}/nginx.pid;`],
		],
		checks: ['-t'],
	},
} satisfies Record<string, Program>;

export type BalancerName = keyof typeof programs;

export function noBalancer(name: BalancerName): string | null {
	return isInstalled(name) || isInstalled(`/usr/sbin/${name}`)
		? null
		: `${name} (Debian package ${name}) is not installed`;
}

interface BalancerPlace {
	addresses: Readonly<Record<string, string>>;
	at: string;
}

async function settled(name: BalancerName, { addresses, at }: BalancerPlace) {
	const { file, listens, settle, words, checks } = programs[name];
	const folder = await mkdtemp(`/tmp/mailctl-${name}-`);
	let text = await readFile(join(files, file), 'utf8');
	for (const [there, here] of Object.entries({ ...addresses, [listens]: `${listens.split(' ')[0]} ${at}` })) {
		if (!text.includes(there)) throw new Error(`${file} does not name ${there}`);
		text = text.replaceAll(there, here);
	}
	const path = join(folder, file);
	await writeFile(path, settle(text, folder));
	return { words: words(path, folder), checks };
}

export async function checkBalancer(name: BalancerName, place: BalancerPlace): Promise<string | null> {
	const { words, checks } = await settled(name, place);
	const child = spawn(name, [...checks, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
	let said = '';
	for (const stream of [child.stdout, child.stderr])
		stream.on('data', (chunk: Buffer) => {
			said += chunk.toString();
		});
	const [code] = await once(child, 'close');
	return code === 0 && !/warn/i.test(said) ? null : said;
}

interface Balancer {
	said(): string;
	stop(): Promise<void>;
}

export async function startBalancer(name: BalancerName, place: BalancerPlace): Promise<Balancer> {
	const { words } = await settled(name, place);
	const child = spawn(name, words, { stdio: ['ignore', 'ignore', 'pipe'] });
	const ended = once(child, 'exit');
	let said = '';
	child.stderr.on('data', (chunk: Buffer) => {
		said += chunk.toString();
	});
	return {
		said: () => said,
		stop: async () => {
			child.kill('SIGTERM');
			await ended;
		},
	};
}
