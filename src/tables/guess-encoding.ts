/** Decodes a text with each code page, and picks the result whose letters are likeliest in the page's languages. */
import iconv from 'iconv-lite';
import { commonCharacters, letterPairs } from './letter-frequencies.js';

export interface EncodingGuess {
	encoding: string;
	isStrong: boolean;
	candidates: readonly { encoding: string; sample: string }[];
}

/** Minimum lead of the best log likelihood over the second. With less, one guess in fifty would be wrong. */
const leastLead = 4;
/** Minimum log likelihood per letter. Below it, even the best result does not look like a text. */
const leastLikely = -11;
const maxCandidates = 5;
const maxWords = 600;

export function guessEncoding(evidence: Buffer): EncodingGuess {
	const hints = countryHints(evidence);
	// Merges pages that give the same text, as windows-1252 and windows-1254 do for German.
	const byText = new Map<string, Reading>();
	for (const reading of codePages.map((page) => read(page, evidence, hints))) {
		const { page = reading.page, likelihood = reading.likelihood } = byText.get(reading.text) ?? {};
		byText.set(reading.text, { ...reading, page, likelihood: Math.max(likelihood, reading.likelihood) });
	}
	const different = [...byText.values()].sort((one, other) => other.likelihood - one.likelihood);
	const [best, next] = different;
	if (best === undefined) return { encoding: 'windows-1252', isStrong: false, candidates: [] };
	const isStrong =
		best.likelihood - (next?.likelihood ?? Number.NEGATIVE_INFINITY) >= leastLead &&
		best.likelihood / Math.max(1, best.letters) > leastLikely;
	const whole = different.filter(isWhole);
	const candidates = (whole.length === 0 ? different : whole)
		.slice(0, maxCandidates)
		.map(({ page, text }) => ({ encoding: page.encoding, sample: sampleOf(text) }));
	return { encoding: best.page.encoding, isStrong, candidates };
}

/** Maximum bytes of non-ASCII lines to collect. A guess needs no more. */
export const evidenceBytes = 48 * 1024;

export function linesBeyondAscii(bytes: Buffer): Buffer {
	const lines: Buffer[] = [];
	let length = 0;
	for (let start = 0; start < bytes.length && length < evidenceBytes; ) {
		let end = start;
		let isPlain = true;
		while (end < bytes.length && bytes[end] !== 10 && bytes[end] !== 13 && end - start < evidenceBytes) {
			if ((bytes[end] ?? 0) > 0x7f) isPlain = false;
			end += 1;
		}
		if (!isPlain) {
			lines.push(bytes.subarray(start, end), lineFeed);
			length += end - start + 1;
		}
		start = Math.max(end, start) + 1;
	}
	return Buffer.concat(lines);
}

const lineFeed = Buffer.from('\n');

interface CodePage {
	encoding: string;
	languages: readonly string[];
	prior: number;
	countries: string;
}

const western = ['fr', 'de', 'es', 'pt', 'it', 'sv', 'da', 'nb', 'fi', 'is', 'nl'];
const central = ['pl', 'cs', 'sk', 'hu', 'ro', 'hr', 'de'];
const cyrillic = ['ru', 'uk', 'bg'];
const westernCountries = 'fr de es pt it se dk no fi is nl be at ch br mx ar uk ie ca cl co';
const centralCountries = 'pl cz sk hu ro hr si';

const codePages: readonly CodePage[] = [
	{ encoding: 'windows-1252', languages: western, prior: 2, countries: westernCountries },
	{ encoding: 'windows-1250', languages: central, prior: -1, countries: centralCountries },
	{ encoding: 'windows-1251', languages: cyrillic, prior: 0, countries: 'ru ua by bg kz' },
	{ encoding: 'koi8-r', languages: cyrillic, prior: -2, countries: 'ru ua' },
	{ encoding: 'cp866', languages: cyrillic, prior: -2, countries: 'ru ua by' },
	{ encoding: 'iso-8859-5', languages: cyrillic, prior: -4, countries: 'ru bg' },
	{ encoding: 'maccyrillic', languages: cyrillic, prior: -3, countries: 'ru ua' },
	{ encoding: 'windows-1253', languages: ['el'], prior: -1, countries: 'gr cy' },
	{ encoding: 'iso-8859-7', languages: ['el'], prior: -3, countries: 'gr cy' },
	{ encoding: 'windows-1254', languages: ['tr', 'de', 'fr'], prior: -1, countries: 'tr' },
	{ encoding: 'windows-1255', languages: ['he'], prior: -2, countries: 'il' },
	{ encoding: 'windows-1256', languages: ['ar'], prior: -2, countries: 'eg sa ae ma iq' },
	{ encoding: 'windows-1257', languages: ['lt', 'lv', 'et'], prior: -3, countries: 'lt lv ee' },
	{ encoding: 'macintosh', languages: western, prior: -3, countries: westernCountries },
	{ encoding: 'cp850', languages: western, prior: -3, countries: westernCountries },
	{ encoding: 'cp852', languages: central, prior: -3, countries: centralCountries },
	{ encoding: 'iso-8859-2', languages: central, prior: -2, countries: centralCountries },
	{ encoding: 'gb18030', languages: ['zh'], prior: 0, countries: 'cn sg' },
	{ encoding: 'big5', languages: ['zh-Hant'], prior: 0, countries: 'tw hk mo' },
	{ encoding: 'shift_jis', languages: ['ja'], prior: 0, countries: 'jp' },
	{ encoding: 'euc-jp', languages: ['ja'], prior: -2, countries: 'jp' },
	{ encoding: 'euc-kr', languages: ['ko'], prior: 0, countries: 'kr' },
];

const hintWeight = 4;

/** Returns the share of each country among addresses with a country-code domain. */
function countryHints(evidence: Buffer): ReadonlyMap<string, number> {
	const found = evidence.toString('latin1').match(/(?<=@[\w.-]{1,100}\.)[a-z]{2}(?![\w.-])/gi) ?? [];
	const counts = new Map<string, number>();
	for (const country of found.map((one) => one.toLowerCase()))
		counts.set(country, (counts.get(country) ?? 0) + 1 / found.length);
	return counts;
}

interface Reading {
	page: CodePage;
	text: string;
	likelihood: number;
	letters: number;
}

/** Allows one broken character per hundred non-ASCII characters, because a file may have damaged lines. */
function isWhole({ text }: Reading): boolean {
	const broken = text.match(brokenCharacters)?.length ?? 0;
	return broken === 0 || broken * 100 <= (text.match(/[^\x00-\x7f]/gu)?.length ?? 0);
}

function read(page: CodePage, evidence: Buffer, hints: ReadonlyMap<string, number>): Reading {
	const text = iconv.decode(evidence, page.encoding);
	const words = wordsOf(text);
	const hint = page.countries.split(' ').reduce((sum, country) => sum + (hints.get(country) ?? 0), 0);
	const isIdeographic = page.languages.some((language) => Object.hasOwn(commonCharacters, language));
	const judged = isIdeographic
		? judgeCharacters(words, page.languages[0] ?? '', page.encoding)
		: judgeLetters(words, page.languages);
	let letters = 0;
	for (const [word, count] of words) letters += count * (word.match(/[^\x00-\x7f]/gu)?.length ?? 0);
	return { page, text, likelihood: judged + page.prior + hint * hintWeight, letters };
}

function wordsOf(text: string): Map<string, number> {
	const words = new Map<string, number>();
	for (const [word] of text.replaceAll('\u0307', '').matchAll(/[^\x00-\x40\x5b-\x60\x7b-\x7f]+/gu)) {
		if (isAscii(word)) continue;
		const count = words.get(word) ?? 0;
		if (count === 0 && words.size >= maxWords) break;
		words.set(word, Math.min(3, count + 1));
	}
	return words;
}

function sampleOf(text: string): string {
	const found = /[^\x00-\x7f]/.exec(text)?.index ?? 0;
	const start = Math.max(text.lastIndexOf('\n', found), found - 20) + 1;
	return (/^[^\r\n]*/.exec(text.slice(start, found + 30))?.[0] ?? '').trim();
}

function judgeLetters(words: ReadonlyMap<string, number>, languages: readonly string[]): number {
	const models = languages.map(modelOf);
	let total = 0;
	for (const [word, count] of words) {
		const likely = models.map((model) => judgeWord(word, model));
		const best = Math.max(...likely);
		const sum = likely.reduce((all, one) => all + Math.exp(one - best), 0);
		total += count * (best + Math.log(sum / models.length));
	}
	return total;
}

interface Model {
	pairs: ReadonlyMap<string, ReadonlyMap<string, number>>;
	letters: ReadonlyMap<string, number>;
}

const models = new Map<string, Model>();

function modelOf(language: string): Model {
	const known = models.get(language);
	if (known !== undefined) return known;
	const pairs = new Map<string, Map<string, number>>();
	const letters = new Map<string, number>();
	let total = 0;
	for (const [, before = '', letter = '', digit] of (letterPairs[language] ?? '').matchAll(/(.)(.)(\d)/gu)) {
		const count = 1.5 * 2 ** Number(digit);
		const behind = pairs.get(before) ?? new Map<string, number>();
		pairs.set(before, behind.set(letter, count));
		letters.set(letter, (letters.get(letter) ?? 0) + count);
		total += count;
	}
	for (const behind of pairs.values()) {
		const sum = [...behind.values()].reduce((all, count) => all + count, 4);
		for (const [letter, count] of behind) behind.set(letter, count / sum);
	}
	for (const [letter, count] of letters) letters.set(letter, count / total);
	const model = { pairs, letters };
	models.set(language, model);
	return model;
}

const openingSigns = '“„‚«‘¿¡§£';
const closingSigns = '”»’…™®©ªº°€';
const usualSigns = `${openingSigns}${closingSigns}·–—№•´\u00a0`;
/** Log likelihoods of characters other than usual letters. */
const likelihoods = { usualSign: -7, sign: -13, broken: -18, capital: -7, strange: -6 } as const;

function judgeWord(word: string, model: Model): number {
	const chars = [...word];
	let sum = 0;
	let before = '_';
	for (const [at, char] of chars.entries()) {
		const around = { last: chars[at - 1] ?? '', next: chars[at + 1] ?? '' };
		if (isLetter(char)) {
			const letter = char.toLowerCase();
			if (letter !== char) sum += judgeCapital(around);
			sum += judgePair(before, letter, model);
			before = letter;
		} else {
			sum += judgeSign(char) + judgePlace(char, around);
			before = '_';
		}
	}
	return before === '_' ? sum : sum + judgePair(before, '_', model);
}

interface Around {
	last: string;
	next: string;
}

function judgeCapital({ last, next }: Around): number {
	return isSmall(last) || (isLetter(last) && isSmall(next)) ? likelihoods.capital : 0;
}

function judgePlace(sign: string, { last, next }: Around): number {
	if (isLetter(last) && isLetter(next)) {
		// Catalan writes the dot between two l: `l·l`.
		const joins = sign === '·' ? /^l$/i.test(last) && /^l$/i.test(next) : sign === '’';
		return joins ? 0 : likelihoods.strange;
	}
	if (isLetter(next)) {
		if (!openingSigns.includes(sign)) return likelihoods.strange;
		// `¡` and `¿` open a sentence, so a capital follows.
		return '¡¿'.includes(sign) && isSmall(next) ? likelihoods.strange / 2 : 0;
	}
	return isLetter(last) && !closingSigns.includes(sign) ? likelihoods.strange / 2 : 0;
}

function isLetter(char: string): boolean {
	return /\p{L}/u.test(char);
}

function isSmall(char: string): boolean {
	return isLetter(char) && char.toUpperCase() !== char;
}

function judgePair(before: string, letter: string, { pairs, letters }: Model): number {
	const likely = Math.log(
		0.85 * (pairs.get(before)?.get(letter) ?? 0) + 0.15 * (letters.get(letter) ?? rareLetter),
	);
	// ASCII is the same in all code pages, so limit its weight: it indicates only the language.
	return isAscii(before + letter) ? Math.max(-1, Math.min(1, (likely - usualAscii) / 3)) : likely;
}

const rareLetter = 1e-5;
const usualAscii = -2.8;

function judgeSign(char: string): number {
	if (isBroken(char)) return likelihoods.broken;
	return usualSigns.includes(char) ? likelihoods.usualSign : likelihoods.sign;
}

/** Characters that texts do not contain: the replacement character, private and unassigned characters, controls. */
const brokenCharacters = /[\ufffd\p{Co}\p{Cn}\x80-\x9f]/gu;

function isBroken(char: string): boolean {
	return char.search(brokenCharacters) === 0;
}

export function isAscii(text: string): boolean {
	return /^[\x00-\x7f]*$/.test(text);
}

function judgeCharacters(words: ReadonlyMap<string, number>, language: string, encoding: string): number {
	const common = new Set(commonCharacters[language] ?? '');
	let total = 0;
	for (const [word, count] of words) {
		let sum = 0;
		let before = '';
		for (const char of word) {
			if (!isAscii(char)) sum += judgeCharacter(char, { language, common, encoding });
			if (before !== '' && isAscii(char) !== isAscii(before)) sum += likelihoods.strange;
			before = char;
		}
		total += count * sum;
	}
	return total;
}

function judgeCharacter(
	char: string,
	{ language, common, encoding }: { language: string; common: ReadonlySet<string>; encoding: string },
): number {
	if (common.has(char)) return Math.log(0.7 / common.size);
	if (isBroken(char)) return likelihoods.broken;
	if (language === 'ja' && /[ぁ-んァ-ヶーｦ-ﾟ]/.test(char)) return -5.2;
	if (/[，。、「」（）　：；！？・～－０-９Ａ-Ｚａ-ｚ々〒]/.test(char)) return -7;
	if (/[\uff61-\uff65]/.test(char)) return -9;
	if (/[\p{Script=Han}\p{Script=Hangul}]/u.test(char))
		return isFirstLevel(char, language, encoding) ? -10 : -14;
	return usualSigns.includes(char) ? -9 : -13;
}

/** Lead bytes of each standard's first level, which contains the frequent characters. */
const firstLevels: Readonly<Record<string, readonly [encoding: string, from: number, to: number]>> = {
	zh: ['gb2312', 0xb0, 0xd7],
	'zh-Hant': ['big5', 0xa4, 0xc6],
	ja: ['shift_jis', 0x88, 0x98],
	ko: ['euc-kr', 0xb0, 0xc8],
};

function isFirstLevel(char: string, language: string, encoding: string): boolean {
	const [standard = encoding, from = 0, to = 0] = firstLevels[language] ?? [];
	const bytes = iconv.encode(char, standard);
	const lead = bytes[0] ?? 0;
	// Trail bytes below 0xa1 belong to extensions of the simplified Chinese and Korean standards.
	const isOwn = language === 'ja' || language === 'zh-Hant' || (bytes[1] ?? 0) >= 0xa1;
	return bytes.length === 2 && isOwn && lead >= from && lead <= to;
}
