/** The filters of a list's subscribers. Service document, "Subscriber list filters". */

import type { CheckContext } from '../check-context.js';
import { Broken, type Check, type Probe, Skipped } from '../model.js';
import { readPage, withQuery } from '../pages.js';
import { type Json, shown } from '../shapes.js';

type Path = (probe: Probe) => Promise<string>;

/** Checks on the subscribers that exist: every row of an answer must match its filter. */
export function filterChecks(path: Path): Check[] {
	return [
		{
			id: 'subscribers.filters',
			group: 'subscribers',
			title: 'email__exact, email__icontains and is_active choose',
			need: 'read',
			run: async (probe) => {
				const list = await path(probe);
				const [first] = (await readPage(probe, list)).results;
				const email = first?.['email'];
				if (typeof email !== 'string') throw new Skipped('the list has no subscribers');
				const part = email.slice(0, Math.max(1, email.indexOf('@')));
				const exact = await filtered(probe, list, { email__exact: email });
				if (exact.length === 0) probe.fault('email__exact of an existing address finds no subscriber');
				const containing = await filtered(probe, list, { email__icontains: part });
				if (containing.length === 0)
					probe.fault('email__icontains of a part of an existing address finds no subscriber');
				// The document does not say that case is looked away from; the name of the parameter does.
				const upper = await filtered(probe, list, { email__icontains: part.toUpperCase() });
				if (upper.length === 0) probe.deviate('email__icontains looks at upper and lower case');
				await filtered(probe, list, { is_active: 'True' });
				await filtered(probe, list, { is_active: 'False' });
				await filtered(probe, list, { is_active: 'True', email__icontains: part });
				return undefined;
			},
		},
	];
}

/** Checks on the run's own list, where the expected rows are known. */
export function ownFilterCheck({ names }: CheckContext, path: Path): Check {
	return {
		id: 'subscribers.own-filters',
		group: 'subscribers',
		title: 'the filters find the run’s own subscribers, and no others',
		need: 'change',
		run: async (probe) => {
			const list = await path(probe);
			for (const [number, is_active] of [
				[2, true],
				[3, false],
			] as const) {
				const body = { email: names.email(number), is_active };
				const answer = await probe.call({ method: 'POST', path: list, body });
				if (answer.status !== 201) throw new Broken(`a second subscriber is answered ${answer.status}`);
			}
			await expectOnly(probe, list, { email__exact: names.email(2) }, [names.email(2)]);
			await expectOnly(probe, list, { email__icontains: 'smoke-3.' }, [names.email(3)]);
			await expectOnly(probe, list, { is_active: 'True', email__icontains: 'smoke-' }, [names.email(2)]);
			await expectOnly(probe, list, { is_active: 'False', email__icontains: 'smoke-3' }, [names.email(3)]);
			await expectOnly(probe, list, { email__exact: names.email(77) }, []);
			return undefined;
		},
	};
}

type Query = Readonly<Record<string, string>>;

async function expectOnly(
	probe: Probe,
	path: string,
	query: Query,
	emails: readonly string[],
): Promise<void> {
	const rows = (await filtered(probe, path, query)).map(({ email }) => String(email));
	// The subscriber of the checks before is called `replaced-smoke-1.…`.
	const found = rows.filter((email) => email.startsWith('smoke-')).sort();
	if (found.join() !== emails.join())
		probe.fault(
			`${words(query)} finds ${found.join(', ') || 'no subscriber'}, not ${emails.join(', ') || 'no subscriber'}`,
		);
}

async function filtered(probe: Probe, path: string, query: Query): Promise<readonly Json[]> {
	const { results } = await readPage(probe, withQuery(path, query));
	const wrong = results.find((row) => !isWanted(row, query));
	if (wrong !== undefined)
		// By its id: an address does not belong in a build log.
		probe.fault(
			`${Object.keys(query).join(' with ')} answers subscriber ${shown(wrong['id'])}, which does not match`,
		);
	return results;
}

function isWanted(row: Json, query: Query): boolean {
	const email = String(row['email']).toLowerCase();
	const { email__exact: exact, email__icontains: part, is_active: active } = query;
	return (
		(exact === undefined || email === exact.toLowerCase()) &&
		(part === undefined || email.includes(part.toLowerCase())) &&
		(active === undefined || row['is_active'] === (active === 'True'))
	);
}

function words(query: Query): string {
	return Object.entries(query)
		.map(([key, value]) => `${key}=${value}`)
		.join('&');
}
