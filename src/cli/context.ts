/** What a command is given to do its work with. */
import type { Api } from '../api/api.js';
import type { Clock } from '../api/datetime.js';
import type { Paths } from './config.js';
import type { Connection, LocalEngine, Target } from './connection.js';
import type { Prompts } from './consent.js';
import type { RawGlobals } from './globals.js';
import type { Io } from './io.js';
import type { Out } from './render/out.js';
import type { Settings } from './settings.js';
import type { Sources } from './sources.js';
import type { Talk } from './talk.js';

export interface CommandContext extends Talk, Prompts {
	readonly io: Io;
	/** stdout. */
	readonly out: Out;
	readonly clock: Clock;
	/** The global options as given; what has environment or profile behind it is in `settings`. */
	readonly globals: RawGlobals;
	readonly settings: Settings;
	readonly paths: Paths;
	/** Standard input and files. */
	readonly sources: Sources;
	/** Aborted by Ctrl-C, SIGTERM and `--deadline`; its reason is the error to end with. Pass it to every call. */
	readonly signal: AbortSignal;
	readonly quiet: boolean;
	readonly dryRun: boolean;
	/** Opens the target on first use. */
	connection(): Promise<Connection>;
	/** Another target than the call's own, as it would be reached; the caller closes it. */
	connectTo(target: Target): Promise<Connection>;
	/** PEM of `--ca-cert`; null: none is named. `UsageError` for what holds no certificate. */
	authority(): Promise<string | null>;
	api(): Promise<Api>;
	/** The engine itself, for ◆ commands; `UsageError` on a deployment. */
	local(): Promise<LocalEngine>;
	/** Done once the command has ended, however it did, before its connection closes. */
	atEnd(work: () => Promise<void>): void;
	/** Under `--dry-run`: says what would be done (`delete list 3`), for machines `{"dry_run": true, …plan}`. */
	wouldDo(what: string, plan: object): Promise<void>;
}
