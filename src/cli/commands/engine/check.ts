import { shownDatabase } from '../../../store/url.js';
import { confirmChange } from '../../config/profiles.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CountCheck } from '../../frame/connection.js';
import { onlyLocal } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { counted } from '../../render/units.js';

export const check = command({
	name: 'check',
	summary: 'verify the database and its counters',
	description:
		'Reads every page and index, looks for rows without a parent, and recounts lists, report figures and ' +
		'campaigns; on PostgreSQL it only recounts. --repair corrects counters. Restore a damaged file from a ' +
		'backup.',
	options: { repair: { kind: 'flag', summary: 'correct wrong counters' } },
	writes: true,
	asksItself: true,
	createsDatabase: false,
	columns: answer('database', 'orphans', 'lists', 'figures', 'campaigns', 'repaired'),
	output:
		'{"database", "orphans": [texts], "lists": [{"list_id", "name", "active", "inactive"}], "figures", "campaigns": [names], "repaired"}; each counter has "kept" and "counted"; "figures" is the number of wrong figures',
	exits: [11, 74],
	examples: ['mailctl engine check', 'mailctl engine check --repair -o json'],
	run: async (cx, { options: { repair } }): Promise<ExitCode> => {
		const target = cx.settings.target.target();
		if (target.kind !== 'local') throw onlyLocal('engine check');
		const database = shownDatabase(target.url);
		const { counts } = await cx.local();
		const { readWhole } = await import('../../connect/inspect.js');
		const orphans = await cx.killable(async () => readWhole(target.url), `reading ${database}`);
		if (repair) await confirmChange(cx, 'engine check --repair');
		const recount = () => (repair ? counts.repair() : counts.check());
		const found = await cx.killable(recount, `recounting ${database}`);
		const wrong = found.lists.length + found.figures + found.campaigns.length;
		if (cx.dryRun) {
			const what = repair ? `correct ${counted(wrong, 'counter')} of ${database}` : `check ${database}`;
			await cx.wouldDo(what, { check: database, with: { repair }, orphans, ...found });
			return exits.done;
		}
		const repaired = repair && wrong > 0;
		const isWell = orphans.length === 0 && (wrong === 0 || repaired);
		const says = repaired ? `; ${counted(wrong, 'counter')} corrected` : ', and its counters are correct';
		await cx.out.document(
			{ database, orphans, ...found, repaired },
			isWell ? `${database} is undamaged${says}` : undefined,
		);
		for (const line of [...orphans, ...(repaired ? [] : faultsIn(found))]) await cx.warn(line);
		if (wrong > 0 && !repaired) await cx.hint(mailctl('engine', 'check', '--repair'));
		return isWell ? exits.done : exits.found;
	},
});

function* faultsIn({ lists, figures, campaigns }: CountCheck): Generator<string> {
	for (const { list_id, name } of lists)
		yield `the counters of list ${list_id} "${name}" do not match its subscribers`;
	if (figures > 0) yield `the reports have ${counted(figures, 'wrong figure')}`;
	for (const name of campaigns) yield `no worker would find the waiting messages of campaign "${name}"`;
}
