/** Postfix between two projects: one receives its bounces by SMTP, the other in its Maildir. */
import { expect } from 'vitest';
import { eventually } from './eventually.js';
import { freePort } from './listen.js';
import { type MailServer, startPostfix } from './postfix.js';
import { makeProject, type Project } from './project.js';
import { startRefusing } from './refusing-server.js';
import { startServer } from './running-server.js';

export interface MailServerTrial {
	server: MailServer;
	served: Project;
	kept: Project;
	servedLog(): string;
	close(): Promise<void>;
}

export async function openTrial(): Promise<MailServerTrial> {
	const port = await freePort();
	const served = await newProject(port, 'news@bounces.example.com');
	const kept = await newProject(port, 'news@kept.example.com');
	const refusing = await startRefusing();
	const taking = await startServer(served.db, ['--bounce-smtp', '127.0.0.1:0']);
	const bounces = Number(taking.bounceSmtp?.split(':').at(-1));
	const closeOurs = () => Promise.all([taking.stop(), refusing.close()]);
	try {
		const server = await startPostfix({ port, next: refusing.port, bounces });
		const close = async () => void (await Promise.all([server.stop(), closeOurs()]));
		return { server, served, kept, servedLog: taking.log, close };
	} catch (error) {
		await closeOurs();
		throw error;
	}
}

async function newProject(smtp: number, bounceAddress: string): Promise<Project> {
	const project = await makeProject({ smtp });
	await project.json(['engine', 'init', '--bounce-address', bounceAddress]);
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'You asked for it']);
	return project;
}

export async function sendTo(
	project: Project,
	to: string,
	{ cc = [], options = [] }: { cc?: readonly string[]; options?: readonly string[] } = {},
): Promise<number> {
	for (const email of [to, ...cc])
		await project.json(['subscribers', 'create', '-l', 'Readers', '--email', email]);
	const copies = cc.flatMap((email) => ['--cc', email]);
	const mail = ['--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hello'];
	return (await project.run(['send', ...mail, '--to', to, ...copies, ...options])).code;
}

export async function messageTo(project: Project, to: string): Promise<unknown> {
	const [message] = (await project.json(['messages', 'list', '--to', to])) as { id: string }[];
	return project.json(['messages', 'get', message?.id ?? '']);
}

export function subscriberOf(project: Project, email: string): Promise<unknown> {
	return project.json(['subscribers', 'get', '-l', 'Readers', email]);
}

export async function keptAbout({ server }: MailServerTrial, to: string): Promise<string> {
	const find = async () => (await server.mails('kept')).find((mail) => mail.includes(to));
	const found = async () => ((await find()) === undefined ? server.log() : 'kept');
	await eventually(async () => expect(await found()).toBe('kept'));
	return (await find()) ?? '';
}

export function explained(project: Project, mail: string): Promise<unknown> {
	return onBounce(project, 'explain', mail);
}

export function ingested(project: Project, mail: string): Promise<unknown> {
	return onBounce(project, 'ingest', mail);
}

async function onBounce(project: Project, verb: string, mail: string): Promise<unknown> {
	const file = await project.file('bounce.eml', Buffer.from(mail, 'latin1'));
	return project.json(['engine', 'bounces', verb, file]);
}
