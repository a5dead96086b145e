/**
 * The depth of nested elements in an HTML text, measured in one pass without a tree. Code that reads a text by
 * recursion, or walks the open elements at each tag, must never get one that is too deep.
 */

/** The maximum depth. Programs that write mail stay far below; a deeper text is an accident or an attack. */
export const maxNesting = 400;

/** The warning for a text that is nested too deeply. */
export const tooDeep = `the HTML is nested deeper than ${maxNesting} elements`;

/** Linear, without recursion. End tags that a browser implies (`<li>` after `<li>`) are implied here. */
export function isTooDeep(html: string): boolean {
	const open = new OpenElements();
	for (let at = html.indexOf('<'); at !== -1; at = html.indexOf('<', at)) {
		if (html.startsWith('<!--', at)) {
			at = after(html, '-->', at + 2);
			continue;
		}
		const isEnd = html.charAt(at + 1) === '/';
		const name = tagNameAt(html, isEnd ? at + 2 : at + 1);
		at += 1;
		if (name === '') continue;
		if (isEnd) {
			open.end(name);
			continue;
		}
		at = tagEnd(html, at + name.length);
		if (html.charAt(at - 2) === '/' || voidElements.has(name)) continue;
		if (rawElements.has(name)) at = endOfRaw(html, name, at);
		else if (open.begin(name) > maxNesting) return true;
	}
	return false;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

const voidElements = words(
	'area base basefont bgsound br col command embed frame hr image img input isindex keygen link meta param source track wbr',
);
/** Their content is text. */
const rawElements = words('script style title textarea xmp iframe noembed noframes plaintext');

const cells = words('td th');
const rows = words('td th tr');
const groups = words('td th tr tbody thead tfoot');
const descriptions = words('dt dd');
const options = words('option');
const paragraph = words('p');
const blocks =
	'address article aside blockquote center details dialog dir div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr ' +
	'main menu nav ol p pre section table ul';
/** By element: the open elements that it ends. */
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

/** Each element is opened once and ended once, whatever the end tags are: the work is linear in the tags. */
class OpenElements {
	readonly #names: string[] = [];
	readonly #counts = new Map<string, number>();

	/** Returns the number of open elements. */
	begin(name: string): number {
		const ended = implied.get(name);
		while (ended?.has(this.#names.at(-1) ?? '')) this.#pop();
		this.#names.push(name);
		this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
		return this.#names.length;
	}

	/** An end tag also ends elements opened inside; one without a beginning is ignored. */
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

/** Names are short; an endless one is not an element. */
const tagName = /[a-z][^\s/>]{0,63}/iy;

function tagNameAt(html: string, at: number): string {
	tagName.lastIndex = at;
	return tagName.exec(html)?.[0].toLowerCase() ?? '';
}

/** The index after the `>` of a tag; one in a quoted value does not count. */
function tagEnd(html: string, from: number): number {
	let quote = 0;
	let last = 0;
	for (let at = from; at < html.length; at++) {
		const code = html.charCodeAt(at);
		if (quote !== 0) {
			if (code === quote) quote = 0;
		} else if (code === 0x3e) return at + 1;
		else if ((code === 0x22 || code === 0x27) && last === 0x3d) quote = code;
		if (code > 0x20) last = code;
	}
	return html.length;
}

function endOfRaw(html: string, name: string, from: number): number {
	const end = new RegExp(`</${name}`, 'gi');
	end.lastIndex = from;
	return end.exec(html)?.index ?? html.length;
}

function after(html: string, text: string, from: number): number {
	const at = html.indexOf(text, from);
	return at === -1 ? html.length : at + text.length;
}
