/** `mailctl smoke`: dry run, run, report, exit code. */

import { randomBytes } from 'node:crypto';
import { shownDatabase } from '../../store/url.js';
import { readConfig } from '../config/config.js';
import { type Hint, joinHints, mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isMachine } from '../frame/globals.js';
import { type Columns, column } from '../render/columns.js';
import { hasColor, hasUnicode, paint } from '../render/terminal.js';
import { counted } from '../render/units.js';
import type { CheckResult, Group, SmokeReport } from './model.js';
import { nameRun } from './names.js';
import type { Selection } from './plan.js';
import { assertWritable, writeReport } from './reporters/report-file.js';
import { type ReporterName, render } from './reporters/reporters.js';
import { summaryOf } from './reporters/text.js';
import { type Finished, findLeftovers, plan, runCleanup, runSmoke, withDeadline } from './session.js';
import { describe } from './sweep.js';

export interface SmokeOptions {
	full: boolean;
	only: readonly Group[];
	skip: readonly Group[];
	sendTo: string | undefined;
	from: string | undefined;
	reporter: ReporterName | undefined;
	reportFile: string | undefined;
	cleanupOnly: boolean;
}

const columns: Columns<CheckResult> = [
	column('id', 'CHECK', { isName: true }),
	column('outcome', 'OUTCOME'),
	column('title', 'TITLE'),
	column('detail', 'DETAIL'),
	column('duration_ms', 'MS', { align: 'right' }),
];

/**
 * Ends after two minutes unless `--deadline` is given. Throws `UsageError` for options that leave nothing to check, and
 * the error of `concluded` after the report.
 */
export async function smokeCommand(cx: CommandContext, options: SmokeOptions): Promise<ExitCode> {
	const { sendTo: to, from, full, only, skip, reporter, reportFile } = options;
	if (isMachine(cx.askedFormat) && reporter !== undefined && reporter !== 'json' && !isFile(reportFile))
		throw new UsageError(`-o ${cx.askedFormat} and --reporter ${reporter} cannot both be meant`, {
			hint: '--report-file FILE takes the report, and standard output the other',
		});
	const mail = to === undefined || from === undefined ? null : { to, from };
	const selection: Selection = { full, sends: mail !== null, only, skip };
	const names = nameRun(cx.clock, () => randomBytes(3).toString('hex'));
	const deadline = withDeadline(cx);
	const session = { names, mail, signal: deadline.signal };
	try {
		if (isFile(reportFile)) await assertWritable(reportFile);
		await warnOfNoDeployment(cx);
		if (cx.dryRun) return await tell(cx, options, () => plan(cx, session, selection), session.signal);
		const finished = options.cleanupOnly
			? await runCleanup(cx, session)
			: await runSmoke(cx, session, selection);
		await publish(cx, options, finished.report);
		const isClean = options.cleanupOnly && finished.report.checks.length === 0;
		if (isClean) await cx.note('earlier runs have left nothing');
		const rights = rightsHint(finished, full);
		if (finished.report.counts.failed === 0 && rights !== null) await cx.warn(leftOutText(finished), rights);
		const wrongBase = finished.halted?.why === 'elsewhere' ? await rightBase(cx, finished.report) : [];
		return concluded(finished, { signal: deadline.signal, rights, wrongBase });
	} finally {
		deadline.stop();
	}
}

/** A person with a profile of a deployment may mean that one. */
async function warnOfNoDeployment({ settings, paths, warn }: CommandContext): Promise<void> {
	const { target } = settings;
	const chosen = target.target();
	if (chosen.kind !== 'local' || target.origin.level !== 'default') return;
	const { profiles } = readConfig(paths);
	const name = Object.keys(profiles).find((one) => profiles[one]?.baseUrl !== undefined);
	if (name === undefined) return;
	await warn(
		`no deployment is checked, but the database ${shownDatabase(chosen.url)}`,
		mailctl('--profile', name, 'smoke'),
	);
}

/** `--dry-run`: the checks that would run, or the records that would be deleted. */
async function tell(
	cx: CommandContext,
	options: SmokeOptions,
	planned: () => ReturnType<typeof plan>,
	signal: AbortSignal,
): Promise<ExitCode> {
	if (options.cleanupOnly) {
		const things = await findLeftovers(cx, signal);
		if (cx.out.format === 'json') await cx.wouldDo('', { delete: things });
		else await cx.out.raw(things.map((thing) => `${describe(thing)}\n`).join(''));
		await cx.note(`dry run: would delete ${things.length} of earlier runs`);
		return exits.done;
	}
	const checks = (await planned()).flatMap(({ check: { id, group, title, need }, isAsked }) =>
		isAsked ? [{ id, group, title, changes: need !== 'read' }] : [],
	);
	if (cx.out.format === 'json') await cx.wouldDo('', { check: checks });
	else await cx.out.raw(checks.map(({ id, title }) => `${id.padEnd(26)}${title}\n`).join(''));
	await cx.note(`dry run: would run ${checks.length} checks`);
	return exits.done;
}

/** False: no report file, or standard output. */
function isFile(path: string | undefined): path is string {
	return path !== undefined && path !== '-';
}

/** To the file or to stdout; a format given without a reporter gets the checks as its rows. */
async function publish(cx: CommandContext, options: SmokeOptions, report: SmokeReport): Promise<void> {
	const asked = cx.settings.output.value;
	const reporter = options.reporter ?? (asked === 'json' ? 'json' : 'text');
	const file = isFile(options.reportFile) ? options.reportFile : undefined;
	const isChosen = cx.globals.fields !== undefined;
	const isRows = asked !== null && asked !== 'json' && asked !== 'table' && asked !== 'wide';
	if (file === undefined && options.reporter === undefined && (isRows || isChosen)) {
		if (asked === 'json') await cx.out.document(report);
		else await cx.out.rows(report.checks, columns, { all: true });
		return cx.note(summaryOf(report));
	}
	const colored = file === undefined && hasColor(cx.io.stdout, cx.settings.color.value, cx.io.env);
	const { stdout } = cx.io;
	const room = file === undefined && stdout.isTTY ? stdout.columns : Number.POSITIVE_INFINITY;
	const style = { unicode: hasUnicode(cx.io.env), paint: await paint(colored), columns: room };
	const text = render(reporter, report, style);
	if (file === undefined) await cx.out.raw(text);
	else await writeReport(file, text);
	// `-o json` prints its document, even if a report of another form goes to a file.
	if (file !== undefined && asked === 'json') await cx.out.document(report);
	if (file !== undefined || reporter !== 'text') await cx.note(summaryOf(report));
}

/**
 * Leftovers count most (11), then the reason of an early end (130, 143, 12), no answer (6) or a refused token (4), and
 * failed checks (11). Thrown, so that machines read it on stderr too.
 */
function concluded(
	{ report, halted }: Finished,
	{ signal, rights, wrongBase }: { signal: AbortSignal; rights: Hint | null; wrongBase: readonly Hint[] },
): ExitCode {
	const { counts, checks, leftovers } = report;
	// Returned: behind an aborted signal a thrown error would give way to the signal's own.
	if (leftovers.length > 0 && signal.aborted) return exits.found;
	if (leftovers.length === 0 && signal.aborted) throw signal.reason;
	if (halted?.why === 'unreachable')
		throw new CliError('network', exits.network, halted.message, { retryable: true });
	if (halted?.why === 'refused')
		throw new CliError('not_authenticated', exits.authentication, halted.message);
	if (counts.failed === 0) return exits.done;
	const failed = checks.filter(({ outcome }) => outcome === 'fail').map(({ id }) => id);
	const sweeping: Hint[] =
		leftovers.length > 0 ? [[mailctl('smoke', '--cleanup-only'), ' deletes what is left behind']] : [];
	const hints = [...wrongBase, ...(rights === null ? [] : [rights]), ...sweeping];
	throw new CliError(
		'smoke_failed',
		exits.found,
		`${failed.length} of ${checks.length} checks failed: ${failed.join(', ')}`,
		hints.length > 0 ? { hint: joinHints(hints) } : {},
	);
}

/** The hint where something else answers: the base URL that is right, or the command that looks at this one. */
async function rightBase(cx: CommandContext, { target }: SmokeReport): Promise<Hint[]> {
	const { rightBaseHints } = await import('../connect/wrong-base.js');
	const { moveTo, serverAtOrigin } = await import('../doctor/origin.js');
	const hints = await rightBaseHints({
		serverAtOrigin: () => serverAtOrigin(cx, target, cx.signal),
		moveTo: (to) => moveTo(cx, target, to),
	});
	return hints.length > 0
		? hints
		: [[`is ${target} the right base URL? `, mailctl('doctor'), ' looks at it']];
}

/** `4 of the 13 skipped checks (webhooks) need …`: the count of the summary, and how much of it is for rights. */
function leftOutText({ report, missing, leftOut }: Finished): string {
	const about = [...new Set(leftOut.map(({ group }) => group))].join(', ');
	const scopes = `${missing.size === 1 ? 'the scope' : 'the scopes'} ${[...missing].join(' and ')}`;
	const all = report.counts.skipped;
	if (leftOut.length === all) return `${counted(all, 'check')} (${about}) skipped: the token lacks ${scopes}`;
	const need = leftOut.length === 1 ? 'needs' : 'need';
	return `${leftOut.length} of the ${all} skipped checks (${about}) ${need} ${scopes}, which the token lacks; the report says why each was skipped`;
}

/** The way out where the token lacks rights for checks; null: it has them all. */
function rightsHint({ missing }: Finished, isFull: boolean): Hint | null {
	if (missing.size === 0) return null;
	// `admin` includes all others.
	const scopes = missing.has('admin') ? ['admin'] : [...missing];
	const words = scopes.flatMap((scope) => ['--scope', scope]);
	const less = isFull && missing.has('admin') ? '; without --full a token that may read is enough' : '';
	return [
		`checks that the token may not make need one with more rights (${scopes.join(', ')}); on its machine a mailctl server makes it by `,
		mailctl('engine', 'tokens', 'create', '--name', 'smoke', ...words),
		less,
	];
}
