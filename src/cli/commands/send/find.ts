/** A job by its name, or what it may have been called. */
import type { Mailings } from '../../../api/capabilities.js';
import type { Mailing } from '../../../api/mailings.js';
import type { CommandContext } from '../../context.js';
import { CliError } from '../../errors.js';
import { exits } from '../../exit.js';
import { didYouMean } from '../../suggest.js';

/** The job, or exit 3 with names that are near. */
export async function findJob(cx: CommandContext, mailings: Mailings, name: string): Promise<Mailing> {
	const page = await mailings.page({ key: name, page_size: 1 }, { signal: cx.signal });
	const found = page.results.find(({ key }) => key === name);
	if (found !== undefined) return found;
	const near = didYouMean(name, await latestNames(cx, mailings));
	throw new CliError('not_found', exits.notFound, `there is no job "${name}"`, {
		hint: near ?? 'mailctl send status',
	});
}

/** The names a typing error can be about: those of the latest thousand. */
async function latestNames(cx: CommandContext, mailings: Mailings): Promise<string[]> {
	const first = await mailings.page({ page_size: namesOfPage }, { signal: cx.signal });
	const last = Math.ceil(first.count / namesOfPage);
	const page =
		last <= 1 ? first : await mailings.page({ page: last, page_size: namesOfPage }, { signal: cx.signal });
	return page.results.map(({ key }) => key);
}

const namesOfPage = 1_000;
