/** The likelihood of words of an alphabet, by the letter pairs of a language. Pure; logarithms of likelihoods. */
import iconv from 'iconv-lite';
import { commonCharacters, letterPairs } from './letter-frequencies.js';

/** Each word is of one of the languages; the share of each language is estimated from the words. */
export function judgeLetters(words: ReadonlyMap<string, number>, languages: readonly string[]): number {
	const models = languages.map(modelOf);
	const rows = [...words].map(([word, count]) => ({
		count,
		likely: models.map((model) => judgeWord(word, model)),
	}));
	let shares = models.map(() => 1 / models.length);
	let total = 0;
	for (let round = 0; round < 3; round += 1) {
		const sums = models.map(() => 0.5);
		total = 0;
		for (const { count, likely } of rows) {
			const best = Math.max(...likely);
			const parts = likely.map((one, at) => Math.exp(one - best) * (shares[at] ?? 0));
			const sum = parts.reduce((all, part) => all + part, 0);
			total += count * (best + Math.log(sum));
			for (const [at, part] of parts.entries()) sums[at] = (sums[at] ?? 0) + (count * part) / sum;
		}
		const all = sums.reduce((sum, one) => sum + one, 0);
		shares = sums.map((one) => one / all);
	}
	return total;
}

interface Model {
	/** By the previous letter, then by the letter: a share. */
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

/** Signs of any text: before a word, after one, within one, and by themselves. */
const openingSigns = '“„‚«‘¿¡§£';
const closingSigns = '”»’…™®©ªº°€';
export const usualSigns = `${openingSigns}${closingSigns}·–—№•´\u00a0`;
/** For characters that are no usual letter, as logarithms. */
export const likelihoods = { usualSign: -7, sign: -13, broken: -18, capital: -7, strange: -6 } as const;

function judgeWord(word: string, model: Model): number {
	const chars = [...word];
	let sum = 0;
	let before = '_';
	for (const [at, char] of chars.entries()) {
		const around = { last: chars[at - 1] ?? '', next: chars[at + 1] ?? '' };
		if (isLetter(char)) {
			const letter = char.toLowerCase();
			if (letter !== char) sum += judgeCapital(around);
			if (isLetter(around.last) && isLatin(around.last) !== isLatin(char)) sum += likelihoods.strange;
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

/** A capital begins a word, or the word has only capitals. */
function judgeCapital({ last, next }: Around): number {
	return isSmall(last) || (isLetter(last) && isSmall(next)) ? likelihoods.capital : 0;
}

function judgePlace(sign: string, { last, next }: Around): number {
	if (isLetter(last) && isLetter(next)) {
		// In Catalan the dot stands between two l.
		const joins = sign === '·' ? /^l$/i.test(last) && /^l$/i.test(next) : sign === '’';
		return joins ? 0 : likelihoods.strange;
	}
	if (isLetter(next)) {
		if (!openingSigns.includes(sign)) return likelihoods.strange;
		// They open a sentence, which begins with a capital.
		return '¡¿'.includes(sign) && isSmall(next) ? likelihoods.strange / 2 : 0;
	}
	return isLetter(last) && !closingSigns.includes(sign) ? likelihoods.strange / 2 : 0;
}

function isLetter(char: string): boolean {
	return /\p{L}/u.test(char);
}

function isLatin(letter: string): boolean {
	return /\p{Script=Latin}/u.test(letter);
}

function isSmall(char: string): boolean {
	return isLetter(char) && char.toUpperCase() !== char;
}

function judgePair(before: string, letter: string, { pairs, letters }: Model): number {
	const likely = Math.log(
		0.85 * (pairs.get(before)?.get(letter) ?? 0) + 0.15 * (letters.get(letter) ?? rareLetter),
	);
	// ASCII is the same in each code page: it shows the language, and not whether the rest is plausible.
	return isAscii(before + letter) ? Math.max(-1, Math.min(1, (likely - usualAscii) / 3)) : likely;
}

const rareLetter = 1e-5;
/** A pair of ASCII letters, on average. */
const usualAscii = -2.8;

function judgeSign(char: string): number {
	if (isBroken(char)) return likelihoods.broken;
	return usualSigns.includes(char) ? likelihoods.usualSign : likelihoods.sign;
}

/** Characters that no text has: the mark for unreadable bytes, private and unassigned characters, controls. */
export const brokenCharacters = /[\ufffd\p{Co}\p{Cn}\x80-\x9f]/gu;

/** One character. */
export function isBroken(char: string): boolean {
	return char.search(brokenCharacters) === 0;
}

export function isAscii(text: string): boolean {
	return /^[\x00-\x7f]*$/.test(text);
}

/** `language`: one of `commonCharacters`; `encoding`: the encoding of the words, with their counts. */
export function judgeCharacters(
	words: ReadonlyMap<string, number>,
	language: string,
	encoding: string,
): number {
	const common = new Set(commonCharacters[language] ?? '');
	let total = 0;
	for (const [word, count] of words) {
		let sum = 0;
		let before = '';
		for (const char of word) {
			if (!isAscii(char)) sum += judgeCharacter(char, { language, common, encoding });
			sum += judgeKatakana(before, char);
			// A letter beside an ideograph, without a blank between.
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
	if (language === 'ja' && /[ぁ-んァ-ヶー]/.test(char)) return -5.2;
	if (/[，。、「」（）　：；！？・～－０-９Ａ-Ｚａ-ｚ々〒]/.test(char)) return -7;
	if (language === 'ja' && isHalfWidth(char)) return rareKatakana.test(char) ? -7 : -5.2;
	if (/[\uff61-\uff65]/.test(char)) return -9;
	if (/[\p{Script=Han}\p{Script=Hangul}]/u.test(char))
		return isFirstLevel(char, language, encoding) ? -10 : -14;
	return usualSigns.includes(char) ? -9 : -13;
}

/** In names with half-width characters. */
const rareKatakana = /[ｦ-ｫｯｿﾇﾈﾌﾍﾎﾒﾚﾟ]/;

/**
 * Half-width katakana: a voice mark follows only certain letters, no word begins with a small letter or with ﾝ, and
 * none has Latin letters too.
 */
function judgeKatakana(before: string, char: string): number {
	if (isHalfWidth(before) ? isAscii(char) : isHalfWidth(char) && before !== '' && isAscii(before))
		return likelihoods.strange;
	if (char === 'ﾞ') return /[ｳｶ-ﾄﾊ-ﾎ]/.test(before) ? 0 : likelihoods.strange;
	if (char === 'ﾟ') return /[ﾊ-ﾎ]/.test(before) ? 0 : likelihoods.strange;
	return /[ｧ-ｰﾝ]/.test(char) && !isHalfWidth(before) ? likelihoods.strange : 0;
}

function isHalfWidth(char: string): boolean {
	return char >= '\uff66' && char <= '\uff9f';
}

/** The standards place frequent characters first: leading bytes of the first level. */
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
	// After the standards' own trailing bytes come those that were added later.
	const isOwn = language === 'ja' || language === 'zh-Hant' || (bytes[1] ?? 0) >= 0xa1;
	return bytes.length === 2 && isOwn && lead >= from && lead <= to;
}
