import { describe, expect, it } from 'vitest';
import { chooseLanguage } from '../../../src/http/public/pages.js';
import { texts } from '../../../src/http/public/texts.js';
import { startCpuClock } from '../../support/cpu-clock.js';

describe('the language of a page', () => {
	it.each<[string | undefined, string]>([
		[undefined, 'en'],
		['', 'en'],
		['de', 'de'],
		['de-CH', 'de'],
		['pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7', 'pt'],
		['en;q=0.5, fr;q=0.9', 'fr'],
		['en ; q=0.5 ,\tfr ; Q=0.9', 'fr'],
		['nl;q=0.8, pl;q=0.8', 'nl'],
		['de-CH, en;q=0.9, de;q=0.1', 'de'],
		['no, da;q=0.9, it;q=0.2', 'it'],
		['eng', 'en'],
		['de;q=0, en;q=0.1', 'en'],
		['de;q=0.001', 'de'],
		['de;q=2, fr;q=0.1', 'fr'],
		['de;q=, fr;q=0.1', 'fr'],
		['de;level=1;q=0.1, fr;q=0.2', 'fr'],
		[',,;,;;q=1, fr', 'fr'],
		['<script>alert(1)</script>, constructor, __proto__, toString', 'en'],
		['de_DE', 'en'],
		[`${'de-'.repeat(30)}de, fr`, 'fr'],
	])('is chosen from the header %j: %s', (header, language) => {
		expect(chooseLanguage(header)).toBe(language);
	});

	it('is chosen quickly, and only from the first fifty entries of a header', () => {
		const many = (count: number) => Array.from({ length: count }, (_, index) => `x${'abcdefgh'[index % 8]}`);
		expect(chooseLanguage([...many(49), 'fr'].join(','))).toBe('fr');
		expect(chooseLanguage([...many(50), 'fr'].join(','))).toBe('en');
		const hostile = [
			'de;q=0.1,'.repeat(10_000),
			','.repeat(100_000),
			';'.repeat(100_000),
			' '.repeat(100_000),
			'a-'.repeat(50_000),
			`de;q=0.${'0'.repeat(100_000)}`,
			'*'.repeat(100_000),
		];
		const cpuMs = startCpuClock();
		for (let time = 0; time < 100; time++) for (const header of hostile) chooseLanguage(header);
		expect(cpuMs() / (100 * hostile.length)).toBeLessThan(1);
	});

	it('has a translation of each English text with the same placeholders', () => {
		const { en, ...others } = texts;
		const filled = ({ question, ofList, ofAll, doneOfList, doneOfAll, ...plain }: typeof en) => ({
			...plain,
			question: question('ADDRESS', 'SENDER'),
			ofList: ofList('LIST'),
			ofAll: ofAll('SENDER'),
			doneOfList: doneOfList('ADDRESS', 'LIST'),
			doneOfAll: doneOfAll('ADDRESS', 'SENDER'),
		});
		const english = new Map(Object.entries(filled(en)));
		for (const [language, table] of Object.entries(others)) {
			for (const [name, text] of Object.entries(filled(table))) {
				expect({ language, name, text }).not.toEqual({ language, name, text: english.get(name) });
				const values = (one: string) => one.match(/ADDRESS|SENDER|LIST/g)?.sort();
				expect({ language, name, values: values(text) }).toEqual({
					language,
					name,
					values: values(english.get(name) ?? ''),
				});
				expect(text).toBe(text.trim());
			}
		}
	});
});
