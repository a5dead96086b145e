/** What becomes of a job whose command ends before it: said when somebody presses Ctrl-C or the server is lost. */
import type { CommandContext } from '../../context.js';
import { shellWord } from '../../shell-word.js';

/** The job, and how it was sent: a later run is not told by itself. */
export interface GoingOn {
	job: string;
	/** As `--rate` gave it. */
	rate?: string | undefined;
}

/** Who goes on with what was released, and how to look at it or end it. */
export async function saysWhoGoesOn(cx: CommandContext, { job, rate }: GoingOn): Promise<string> {
	const { local } = await cx.connection();
	const cancel = `mailctl send cancel ${shellWord(job)} drops what is not sent`;
	const look = `mailctl send status ${shellWord(job)} shows how far it is`;
	if (local === null) return `the server goes on; ${look}, ${cancel}`;
	const other = await otherSender(cx);
	if (other !== null) return `${other} goes on with this database; ${look}, ${cancel}`;
	const pace = rate === undefined ? '' : ` --rate ${rate}`;
	return `mailctl send resume ${shellWord(job)}${pace} goes on, ${cancel}`;
}

/** How to go on with a job that is not released. */
export function saysHowToRelease(job: string): string {
	const name = shellWord(job);
	return `nothing was sent; mailctl send resume ${name} goes on, mailctl send cancel ${name} drops it`;
}

/** After a server was lost: what is accepted must not be sent again. */
export function saysHowToLook(job: string): string {
	const name = shellWord(job);
	return `the server goes on; mailctl send status ${name} shows how far it is, mailctl send resume ${name} waits again; do not send it again`;
}

/** `mailctl serve` (4711): a process that sends whatever is due. */
async function otherSender(cx: CommandContext): Promise<string | null> {
	const { local } = await cx.connection();
	const { workers } = (await local?.queue.stats()) ?? { workers: [] };
	const found = workers.find(({ role }) => role === 'serve' || role === 'worker');
	if (found === undefined) return null;
	// Whether a server sends at all is not written down; one that holds messages does.
	const doubt = found.role === 'serve' && found.messages === 0 ? ', unless it runs with --no-worker,' : '';
	return `mailctl ${found.role} (pid ${found.pid})${doubt}`;
}

/** Who sends what is still queued: a command on this machine, or the server by itself. */
export async function sender(cx: CommandContext, words = 'worker'): Promise<string> {
	const { local } = await cx.connection();
	return local === null ? 'the server' : `mailctl ${words}`;
}

/** The same as what to do once a mail server is mended. */
export async function senderAfter(cx: CommandContext): Promise<string> {
	const { local } = await cx.connection();
	return local === null ? 'the server sends it' : 'run mailctl worker --drain';
}
