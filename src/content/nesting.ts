/**
 * Measures the depth of nested elements without a tree: code that reads HTML by recursion must not get a text
 * that is too deep.
 */

import { Tokenizer } from 'htmlparser2';
import { ignoreAll } from './attributes.js';

/** Programs that write mail stay far below. */
export const maxNesting = 400;

export const tooDeep = `the HTML is nested deeper than ${maxNesting} elements`;

export function isTooDeep(html: string): boolean {
	const open = new OpenElements();
	let name = '';
	const tokenizer = new Tokenizer(
		{ decodeEntities: false },
		{
			...ignoreAll,
			onopentagname(start, end) {
				name = html.slice(start, end).toLowerCase();
			},
			onopentagend() {
				if (!voidElements.has(name) && open.begin(name) > maxNesting) tokenizer.pause();
			},
			onclosetag(start, end) {
				open.end(html.slice(start, end).toLowerCase());
			},
		},
	);
	tokenizer.write(html);
	return !tokenizer.running;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

const voidElements = words(
	'area base basefont bgsound br col command embed frame hr image img input isindex keygen link meta param source track wbr',
);
const cells = words('td th');
const rows = words('td th tr');
const groups = words('td th tr tbody thead tfoot');
const descriptions = words('dt dd');
const options = words('option');
const paragraph = words('p');
const blocks =
	'address article aside blockquote center details dialog dir div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr ' +
	'main menu nav ol p pre section table ul';
const implied: ReadonlyMap<string, ReadonlySet<string>> = new Map([
	...blocks.split(' ').map((name) => [name, paragraph] as const),
	['li', words('li p')],
	['dt', descriptions],
	['dd', descriptions],
	['option', options],
	['optgroup', words('option optgroup')],
	['td', cells],
	['th', cells],
	['tr', rows],
	['tbody', groups],
	['thead', groups],
	['tfoot', groups],
]);

class OpenElements {
	readonly #names: string[] = [];
	readonly #counts = new Map<string, number>();

	begin(name: string): number {
		const ended = implied.get(name);
		while (ended?.has(this.#names.at(-1) ?? '')) this.#pop();
		this.#names.push(name);
		this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
		return this.#names.length;
	}

	end(name: string): void {
		if ((this.#counts.get(name) ?? 0) === 0) return;
		while (this.#pop() !== name);
	}

	#pop(): string {
		const name = this.#names.pop() ?? '';
		this.#counts.set(name, (this.#counts.get(name) ?? 1) - 1);
		return name;
	}
}
