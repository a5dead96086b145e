/** Query parameters by Django's rules: the last of repeated values counts, a plus is a blank. */
import { invalid } from '../../api/errors.js';
import { parseInteger, trimWhitespace } from '../../api/schema/python.js';
import { texts } from '../../api/schema/texts.js';

export class Query {
	readonly #values = new Map<string, string[]>();

	constructor(text: string) {
		if (text === '') return;
		for (const [name, value] of new URLSearchParams(text)) {
			const known = this.#values.get(name);
			if (known === undefined) this.#values.set(name, [value]);
			else known.push(value);
		}
	}

	text(name: string): string | undefined {
		return this.#values.get(name)?.at(-1);
	}

	texts(name: string): readonly string[] | undefined {
		return this.#values.get(name);
	}

	exact(name: string): string | undefined {
		const text = this.text(name);
		if (text?.includes('\0') !== true) return text;
		throw invalid({ [name]: [{ code: 'null_characters_not_allowed', message: texts.nullCharacters }] });
	}

	filter(name: string): string | undefined {
		const trimmed = trimWhitespace(this.exact(name) ?? '');
		return trimmed === '' ? undefined : trimmed;
	}

	integer(name: string): number | undefined {
		const text = this.text(name);
		return text === undefined ? undefined : (parseInteger(text) ?? Number.NaN);
	}

	/** Any other value does not filter (api-decisions 9, 43). */
	boolean(name: string): boolean | undefined {
		const text = this.text(name) ?? '';
		if (['True', 'true', '1'].includes(text)) return true;
		return ['False', 'false', '0'].includes(text) ? false : undefined;
	}

	/** DRF's replace_query_param: `urlencode(sorted(…), doseq=True)`; null removes the page. */
	withPage(page: number | null): string {
		const values = new Map(this.#values);
		if (page === null) values.delete('page');
		else values.set('page', [String(page)]);
		return [...values]
			.sort(([a], [b]) => (a < b ? -1 : 1))
			.flatMap(([name, all]) => all.map((value) => `${quotePlus(name)}=${quotePlus(value)}`))
			.join('&');
	}
}

function quotePlus(text: string): string {
	return encodeURIComponent(text)
		.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
		.replaceAll('%20', '+');
}
