/**
 * Guesses the code page of a text that is in no UTF. It is read in each code page, and the result that reads most like
 * names and words of one of its languages wins. Pure. The measure is the logarithm of a likelihood: 1 more is e times
 * as likely.
 */
import iconv from 'iconv-lite';
import { brokenCharacters, isAscii, judgeCharacters, judgeLetters } from './language-score.js';
import { commonCharacters } from './letter-frequencies.js';

export interface EncodingGuess {
	/** A name iconv-lite knows. */
	encoding: string;
	/** No other code page gives a different text that is nearly as likely. */
	isStrong: boolean;
	/**
	 * Most likely first, each with a sample of the text in that encoding; the samples differ. Without encodings that
	 * cannot read one character in a hundred, where another can.
	 */
	candidates: readonly { encoding: string; sample: string }[];
}

/** With a smaller lead, another encoding is too close: one in fifty such guesses would be wrong. */
const leastLead = 4;
/** A likelihood for each letter, below which nothing reads like a text. */
const leastLikely = -11;
const maxCandidates = 5;
/** The number of words that are read; further ones would not change the result. */
const maxWords = 600;

/** `evidence`: lines of the text with bytes over 0x7f, or all of it. */
export function guessEncoding(evidence: Buffer): EncodingGuess {
	const hints = countryHints(evidence);
	const readings = codePages
		.map((page) => read(page, evidence, hints))
		.sort((one, other) => other.likelihood - one.likelihood);
	const different = readings.flatMap((one, at) =>
		readings.findIndex(({ text }) => text === one.text) === at ? [mostUsual(one, readings)] : [],
	);
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

/**
 * The usual one among the code pages that read the same text: German names in windows-1252 have the octets of
 * windows-1254, and some read like Turkish. What tells the two apart is in nearly every Turkish text.
 */
function mostUsual(best: Reading, readings: readonly Reading[]): Reading {
	const same = readings.filter(({ text }) => text === best.text);
	return same.reduce((usual, one) => (one.prior > usual.prior ? one : usual), best);
}

/** This much text beyond ASCII is enough for the decision. */
export const evidenceBytes = 48 * 1024;

/** Lines with bytes beyond ASCII, whole and in order, up to 48 KiB of them. */
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
	/** Languages of `letterPairs`, or one of `commonCharacters`. */
	languages: readonly string[];
	/** How rare its files are: added to their likelihood. */
	prior: number;
	/** Top-level domains of countries where it is used. */
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

/** The maximum weight of the addresses' countries. */
const hintWeight = 4;

/** The share of each country among the addresses with one. */
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
	/** Of the code page and of the countries of the addresses, without the text. */
	prior: number;
	likelihood: number;
	/** Letters beyond ASCII. */
	letters: number;
}

/** One broken byte in a long text is an error of its line; in a short one it rules out the encoding. */
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
	const prior = page.prior + hint * hintWeight;
	return { page, text, prior, likelihood: judged + prior, letters };
}

/** Sequences of letters with one beyond ASCII, and signs that are no letters; how often, three times at most. */
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

/** The first cell that differs in another encoding. */
function sampleOf(text: string): string {
	const found = /[^\x00-\x7f]/.exec(text)?.index ?? 0;
	const start = Math.max(text.lastIndexOf('\n', found), found - 20) + 1;
	return (/^[^\r\n]*/.exec(text.slice(start, found + 30))?.[0] ?? '').trim();
}
