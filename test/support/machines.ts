/**
 * Simulates machines by network namespaces on a bridge in another namespace, apart from this machine's network. Needs
 * root. `ip netns exec` mounts the files of `/etc/netns/NAME` over those of `/etc` (ip-netns(8)).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { runProgram, runs } from './run-program.js';

export interface Machine {
	address: string;
	within: readonly string[];
	start(
		program: string,
		words: readonly string[],
		options?: { env?: NodeJS.ProcessEnv; user?: string },
	): ChildProcess;
	cut(): void;
	join(): void;
	setHosts(hosts: Readonly<Record<string, string>>): void;
}

export interface Machines<Name extends string> extends Record<'machines', Record<Name, Machine>> {
	close(): void;
}

function ip(...words: readonly string[]): void {
	const { status, stderr } = runProgram('ip', words);
	if (status !== 0) throw new Error(`ip ${words.join(' ')}: ${stderr}`);
}

export const noMachines: string | null = whyNot();

function whyNot(): string | null {
	if (process.getuid?.() !== 0) return 'only root may make network namespaces';
	if (!runs('ip', '-V')) return 'ip (Debian package iproute2) is not installed';
	const [name, bridge] = [`mctest-${process.pid}`, `mctest-${process.pid}`];
	try {
		if (!runs('ip', 'netns', 'add', name)) return 'root may not make network namespaces here';
		const isMade = runs('ip', '-n', name, 'link', 'add', bridge.slice(0, 15), 'type', 'bridge');
		return isMade ? null : 'root may not make a bridge here';
	} finally {
		runs('ip', 'netns', 'del', name);
	}
}

let made = 0;

export function makeMachines<Name extends string>(...names: Name[]): Machines<Name> {
	made += 1;
	const prefix = `mctest-${process.pid}-${made}`;
	const hub = `${prefix}-hub`;
	const all = names.map((name, at) => ({ name, namespace: `${prefix}-${name}`, link: `link${at}`, at }));
	const close = () => {
		for (const namespace of [...all.map((one) => one.namespace), hub]) {
			runs('ip', 'netns', 'del', namespace);
			rmSync(`/etc/netns/${namespace}`, { recursive: true, force: true });
		}
	};
	try {
		ip('netns', 'add', hub);
		ip('-n', hub, 'link', 'add', 'hub', 'type', 'bridge');
		ip('-n', hub, 'link', 'set', 'hub', 'up');
		const found = all.map(({ name, namespace, link, at }) => {
			const address = `10.77.0.${at + 1}`;
			mkdirSync(`/etc/netns/${namespace}`, { recursive: true });
			const setHosts: Machine['setHosts'] = (hosts) =>
				writeFileSync(
					`/etc/netns/${namespace}/hosts`,
					Object.entries({ localhost: '127.0.0.1', ...hosts })
						.map(([host, where]) => `${where} ${host}\n`)
						.join(''),
				);
			setHosts({});
			ip('netns', 'add', namespace);
			ip('-n', hub, 'link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
			ip('-n', hub, 'link', 'set', link, 'master', 'hub', 'up');
			ip('-n', namespace, 'link', 'set', 'lo', 'up');
			ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
			ip('-n', namespace, 'link', 'set', 'eth0', 'up');
			const within = ['ip', 'netns', 'exec', namespace];
			const machine: Machine = {
				...{ address, within, setHosts },
				start: (program, words, { env = process.env, user } = {}) => {
					const as = user === undefined ? [] : ['runuser', '-u', user, '--'];
					const [first = '', ...rest] = [...within, ...as, program, ...words];
					return spawn(first, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] });
				},
				cut: () => ip('-n', hub, 'link', 'set', link, 'down'),
				join: () => ip('-n', hub, 'link', 'set', link, 'up'),
			};
			return [name, machine] as const;
		});
		return { machines: Object.fromEntries(found) as Record<Name, Machine>, close };
	} catch (error) {
		close();
		throw error;
	}
}
