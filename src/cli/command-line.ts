/** Commands as hints say them: with the target this call was given, so that what is pasted works on the same one. */
import type { CommandContext } from './context.js';
import type { RawGlobals } from './globals.js';
import type { Settings } from './settings.js';
import { shellWord } from './shell-word.js';

/** What flags of this call said about where it goes; what came from the environment or a profile holds anyway. */
export interface NamedTarget {
	/** `--db news.db `, with a space behind it; empty when no flag named a target. */
	flags: string;
	/** A deployment: commands of the machine that owns the database are not for it. */
	isRemote: boolean;
}

/** No flag named a target. */
export const unnamed: NamedTarget = { flags: '', isRemote: false };

/** Throws nothing: a profile that names no target, or two, is for the command itself to report. */
export function namedTarget(globals: RawGlobals, { target }: Settings): NamedTarget {
	const flags = targetFlags(globals);
	const ofProfile = target.profile === null ? undefined : target.settings.baseUrl;
	return { flags, isRemote: (globals.baseUrl ?? ofProfile) !== undefined };
}

/**
 * The hint with the target put into each of its commands that has one and names none. For hints alone: their words
 * are ours. Messages and notes repeat what people and services wrote, which may look like a command; what a hint
 * repeats of that is in quotes, and quotes are left alone.
 */
export function keepTarget(hint: string, { flags, isRemote }: NamedTarget): string {
	if (flags === '') return hint;
	return hint.replaceAll(commands, (found, word: string | undefined, at: number) => {
		if (word === undefined || namesTarget(hint.slice(at + found.length))) return found;
		return isRemote && ofTheMachine.has(word) ? found : `mailctl ${flags}${word}`;
	});
}

/** `mailctl --db news.db WORDS` when a flag of this call named a target, for commands outside of hints. */
export function commandLine(cx: Pick<CommandContext, 'globals'>, words: string): string {
	return `mailctl ${targetFlags(cx.globals)}${words}`;
}

/** What is quoted is passed over whole; an apostrophe within a word opens nothing. `mailctl serve (pid 7)` is a process. */
const commands =
	/(?<!\w)'[^']*'(?:\\''[^']*')*|"[^"]*"|(?<![\w./-])mailctl (lists|subscribers|fields|webhooks|send|report|templates|senders|messages|suppressions|serve|worker|engine|api|smoke|doctor)(?![\w-]| \(pid )/g;

const ofTheMachine: ReadonlySet<string> = new Set(['engine', 'serve', 'worker']);

/** Whether the words behind a command, up to the next one, name a target already or ask for help alone. */
function namesTarget(behind: string): boolean {
	const [own = ''] = behind.split(/(?<![\w./-])mailctl /, 1);
	return /(?:^|\s)(?:--db|--base-url|--profile|-p|--help)(?=[\s=]|$)/.test(own);
}

/** Never a token itself, and no address with a password in it. */
function targetFlags({ db, baseUrl, profile, tokenFile, caCert, insecure, proxy }: RawGlobals): string {
	const reached =
		db === undefined ? { '--token-file': tokenFile, '--ca-cert': caCert, '--proxy': proxy } : {};
	const named = { '--db': db, '--base-url': baseUrl, '-p': profile };
	if (Object.values(named).every((value) => value === undefined)) return '';
	const words = Object.entries({ ...named, ...reached }).flatMap(([flag, value]) =>
		value === undefined || value === '-' || hasPassword(value) ? [] : [`${flag} ${shellWord(value)} `],
	);
	return `${words.join('')}${insecure === true && db === undefined ? '--insecure ' : ''}`;
}

function hasPassword(value: string): boolean {
	return /^[\w+.-]+:\/\/[^/]*@/.test(value);
}
