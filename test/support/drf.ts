/**
 * Starts the Django REST framework service (drf/service.py), an independent implementation of the service document, on
 * a free port. Tests that use it are skipped if the framework is not installed.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Debian's interpreter, because others do not see its packages. */
const python = '/usr/bin/python3';
const service = fileURLToPath(new URL('drf/service.py', import.meta.url));

export interface DjangoService {
	baseUrl: string;
	token: string;
	sender: string;
	stop(): Promise<void>;
}

export interface DjangoOptions {
	pageSize?: number;
	maxPageSize?: number;
	flaky?: boolean;
	retryAfter?: number;
	busy?: number;
	noChallenge?: boolean;
	now?: string;
}

export async function djangoMissing(): Promise<string | null> {
	try {
		await promisify(execFile)(python, ['-c', 'import rest_framework, django_filters']);
		return null;
	} catch {
		return `the Django service needs ${python} with python3-djangorestframework and python3-django-filters`;
	}
}

export async function startDjango(options: DjangoOptions = {}): Promise<DjangoService> {
	const child = spawn(python, ['-B', service, ...argumentsOf(options)], { stdio: ['pipe', 'pipe', 'pipe'] });
	let complaints = '';
	child.stderr.on('data', (chunk: Buffer) => {
		complaints = (complaints + chunk.toString()).slice(-4_000);
	});
	for await (const line of createInterface({ input: child.stdout })) {
		const { port, token, sender } = parseGreeting(line);
		return { baseUrl: `http://127.0.0.1:${port}`, token, sender, stop: () => stop(child) };
	}
	throw new Error(`the Django service did not start: ${complaints}`);
}

function argumentsOf(options: DjangoOptions): string[] {
	return [
		...(options.pageSize === undefined ? [] : ['--page-size', String(options.pageSize)]),
		...(options.maxPageSize === undefined ? [] : ['--max-page-size', String(options.maxPageSize)]),
		...(options.flaky === true ? ['--flaky'] : []),
		...(options.retryAfter === undefined ? [] : ['--retry-after', String(options.retryAfter)]),
		...(options.busy === undefined ? [] : ['--busy', String(options.busy)]),
		...(options.noChallenge === true ? ['--no-challenge'] : []),
		...(options.now === undefined ? [] : ['--now', options.now]),
	];
}

function parseGreeting(line: string): { port: number; token: string; sender: string } {
	const greeting: unknown = JSON.parse(line);
	if (typeof greeting !== 'object' || greeting === null) throw new Error(`the Django service said: ${line}`);
	const { port, token, sender } = greeting as Record<string, unknown>; // checked on the next line
	if (typeof port !== 'number' || typeof token !== 'string' || typeof sender !== 'string')
		throw new Error(`the Django service said: ${line}`);
	return { port, token, sender };
}

async function stop(child: ChildProcess): Promise<void> {
	if (child.exitCode !== null || child.signalCode !== null) return;
	const ended = once(child, 'exit');
	child.stdin?.end();
	await ended;
}
