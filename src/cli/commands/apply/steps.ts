/** Planned changes: the consent to them, and carrying them out. */
import { confirmChange } from '../../config/profiles.js';
import type { CommandContext } from '../../frame/context.js';
import { counted } from '../../render/units.js';
import { whatGoes } from '../../verbs/retention.js';
import type { Change } from './columns.js';
import type { Step } from './plan.js';

/** Consent to what is deleted; else to the change of a protected profile by `command`. */
export async function agree(cx: CommandContext, command: string, steps: readonly Step[]): Promise<void> {
	const changes = steps.map(({ change }) => change);
	const deleted = steps.filter(({ change }) => change.action === 'delete' && change.kind !== 'settings');
	if (deleted.length === 0) {
		if (changes.length > 0) await confirmChange(cx, command);
		return;
	}
	const names = deleted.slice(0, mostNamed).map(({ change: { kind, name }, subscribers = 0 }) => {
		const people = subscribers === 0 ? '' : ` with ${counted(subscribers, 'subscriber')}`;
		return `the ${kind.slice(0, -1)} "${name}"${people}`;
	});
	const more = deleted.length > mostNamed ? ` and ${deleted.length - mostNamed} more` : '';
	const others = sentence(changes.filter((change) => !deleted.some((step) => step.change === change)));
	const what = [`delete ${names.join(', ')}${more}`, ...(others === null ? [] : [others])].join('; and ');
	const isSevere = deleted.some(({ change: { kind } }) => kind === 'lists' || kind === 'fields');
	await cx.confirm(isSevere ? { kind: 'severe', what, name: 'prune' } : { kind: 'mild', what });
}

const mostNamed = 10;

/** One after the other: what was made before a refusal stays, and the next run goes on from there. */
export async function carryOut(cx: CommandContext, steps: readonly Step[]): Promise<void> {
	let made = 0;
	try {
		for (const step of steps) {
			cx.signal.throwIfAborted();
			await step.make();
			made += 1;
		}
	} catch (error) {
		const failed = steps[made]?.change;
		const at =
			failed === undefined
				? ''
				: `, at the ${failed.action} of the ${failed.kind.slice(0, -1)} "${failed.name}"`;
		await cx.warn(`stopped after ${made} of ${counted(steps.length, 'change')}${at}: run it again to go on`);
		await settle(cx, steps.slice(0, made)).catch(() => undefined);
		throw error;
	}
	await settle(cx, steps);
}

async function settle(cx: CommandContext, steps: readonly Step[]): Promise<void> {
	for (const { change, settle } of steps)
		if (await settle?.())
			await cx.note(
				`${change.kind.slice(0, -1)} "${change.name}" was made elsewhere at the same time: that one is used`,
			);
}

/** What a shorter retention among the changes deletes; null: nothing, or no database of this machine. Completes "This will …". */
export async function retentionIn(cx: CommandContext, changes: readonly Change[]): Promise<string | null> {
	const { local } = await cx.connection();
	return local === null ? null : whatGoes(local, settingsIn(changes));
}

/** The settings as they will be, by name. */
function settingsIn(changes: readonly Change[]): Record<string, string | null> {
	const settings = changes.filter(({ kind }) => kind === 'settings');
	return Object.fromEntries(
		settings.map(({ name, changes: { value } }) => [name, value?.to == null ? null : String(value.to)]),
	);
}

/** `create 1 list and 2 fields, delete 1 list`, or with verbs of the past `created 1 list …`; null: nothing. */
export function sentence(
	changes: readonly Change[],
	verbs: Readonly<Record<Change['action'], string>> = plainVerbs,
): string | null {
	const parts = (['create', 'update', 'delete'] as const).flatMap((action) => {
		const kinds = changes.filter((one) => one.action === action).map(({ kind }) => kind);
		const counts = [...new Set(kinds)].map((kind) =>
			counted(kinds.filter((one) => one === kind).length, kind.slice(0, -1)),
		);
		return counts.length === 0 ? [] : [`${verbs[action]} ${enumerated(counts)}`];
	});
	return parts.length === 0 ? null : parts.join(', ');
}

function enumerated(words: readonly string[]): string {
	return [words.slice(0, -1).join(', '), ...words.slice(-1)].filter((part) => part !== '').join(' and ');
}

const plainVerbs = { create: 'create', update: 'update', delete: 'delete' } as const;
export const pastVerbs = { create: 'created', update: 'updated', delete: 'deleted' } as const;
