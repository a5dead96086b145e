/** Builds hints: commands that users can paste into a shell, with the target of the current command. */
import { shownDatabase } from '../../store/url.js';
import type { Settings } from '../config/settings.js';
import { flagOf, type OptionSpec, type OptionSpecs, offFlagOf } from './command.js';
import type { Hint, OwnCommand, SeveralHints } from './errors.js';
import type { RawGlobals } from './globals.js';
import { durationWord } from './values.js';
import { shellWord } from './words.js';

export interface NamedTarget {
	words: readonly string[];
	isRemote: boolean;
}

export const unnamed: NamedTarget = { words: [], isRemote: false };

export function namedTarget(globals: RawGlobals, { target }: Settings): NamedTarget {
	const isRemote =
		target.profile === null ? target.target().kind === 'remote' : target.settings.baseUrl !== undefined;
	return { words: targetWords(globals), isRemote };
}

export type { Hint, OwnCommand };

export function mailctl(...command: readonly string[]): OwnCommand {
	return { command };
}

export function system(program: string, ...command: readonly string[]): OwnCommand {
	return { command, program };
}

/** Omits defaults. Writes `-` for a value from standard input. */
export function optionWords(
	specs: OptionSpecs,
	values: Readonly<Record<string, unknown>>,
	{ dryRun }: { dryRun: boolean },
): readonly string[] {
	const words = Object.entries(specs).flatMap(([key, spec]) => wordsOf(key, spec, values[key]));
	return dryRun ? [...words, '--dry-run'] : words;
}

function wordsOf(key: string, spec: OptionSpec, value: unknown): string[] {
	const flag = flagOf(key);
	if (spec.kind === 'tri' && value === false) return [offFlagOf(key, spec)];
	if (value === undefined || value === false || ('default' in spec && value === spec.default)) return [];
	if (value === true) return [flag];
	if (spec.kind === 'duration' && typeof value === 'number') return [flag, durationWord(value)];
	if (Array.isArray(value)) return value.flatMap((one) => [flag, String(one)]);
	if (typeof value !== 'object' || value === null) return [flag, String(value)];
	if (spec.kind === 'file')
		return [flag, 'path' in value && typeof value.path === 'string' ? value.path : '-'];
	return Object.entries(value).flatMap(([name, text]) => [flag, `${name}=${text}`]);
}

export function joinHints(hints: readonly Hint[]): SeveralHints {
	return { hints: hints.flatMap(eachHint) };
}

export function eachHint(hint: Hint): readonly Hint[] {
	return typeof hint === 'object' && 'hints' in hint ? hint.hints : [hint];
}

export function hintText(hint: Hint, target: NamedTarget): string {
	if (typeof hint === 'string') return hint;
	if ('command' in hint) return commandText(hint, target);
	if ('hints' in hint) return hint.hints.map((one) => hintText(one, target)).join('; ');
	return hint.map((part) => hintText(part, target)).join('');
}

export function hintCommands(hint: Hint, target: NamedTarget): readonly string[] {
	return ownCommands(hint).map((command) => commandText(command, target));
}

function ownCommands(hint: Hint): readonly OwnCommand[] {
	if (typeof hint === 'string') return [];
	if ('command' in hint) return [hint];
	return ('hints' in hint ? hint.hints : hint).flatMap(ownCommands);
}

function commandText({ command, program }: OwnCommand, { words, isRemote }: NamedTarget): string {
	if (program !== undefined) return [program, ...command].map(shellWord).join(' ');
	const [noun = ''] = command;
	const isAnywhere = withoutTarget.has(noun) || command.some((word) => ownTarget.has(word));
	const target = isAnywhere || (isRemote && ofTheMachine.has(noun)) ? [] : words;
	return `mailctl ${[...target, ...command].map(shellWord).join(' ')}`;
}

const withoutTarget: ReadonlySet<string> = new Set([
	...['profile', 'config', 'login', 'logout'],
	...['help', 'commands', 'version', 'demo', 'sink', 'completion'],
]);

const ownTarget: ReadonlySet<string> = new Set(['--db', '--base-url', '--profile', '-p', '--help']);

export const ofTheMachine: ReadonlySet<string> = new Set(['engine', 'serve', 'worker']);

/** Omits tokens, and URLs with a password. */
function targetWords(globals: RawGlobals): readonly string[] {
	const { db, baseUrl, profile, tokenFile, caCert, insecure, proxy } = globals;
	const reached =
		db === undefined ? { '--token-file': tokenFile, '--ca-cert': caCert, '--proxy': proxy } : {};
	const shown = db === undefined ? undefined : shownDatabase(db);
	const named = { '--db': shown, '--base-url': baseUrl, '-p': profile };
	if (Object.values(named).every((value) => value === undefined)) return [];
	const words = Object.entries({ ...named, ...reached }).flatMap(([flag, value]) =>
		value === undefined || value === '-' || (value !== shown && /^[\w+.-]+:\/\/[^/]*@/.test(value))
			? []
			: [flag, value],
	);
	return insecure === true && db === undefined ? [...words, '--insecure'] : words;
}
