import { type Branding, type TrackingPorts, unbranded } from '../../delivery/tracking/lookup.js';
import type { PublicRequest } from '../messages.js';
import { type Language, languages } from './texts.js';

export interface Presentation {
	language: Language;
	branding: Branding;
}

export async function presentationOf(
	ports: Pick<TrackingPorts, 'branding'>,
	{ headers }: Pick<PublicRequest, 'headers'>,
): Promise<Presentation> {
	const branding = await ports.branding().catch(() => unbranded);
	return { language: chooseLanguage(headers['accept-language']), branding };
}

const maxRanges = 50;
const maxRangeLength = 64;

interface LanguageRange {
	tag: string;
	quality: number;
}

/** Accept-Language (RFC 9110 s.12.5.4, RFC 4647 s.3.4: `de-CH` is `de`); English if none fits. */
export function chooseLanguage(acceptLanguage: string | undefined): Language {
	const ranges = (acceptLanguage ?? '')
		.split(',', maxRanges)
		.map(parseRange)
		.filter((range) => range !== null);
	const refused = new Set(ranges.filter(({ quality }) => quality === 0).map(({ tag }) => tag));
	const named = new Set(ranges.map(({ tag }) => languageOf(tag)));
	const wanted = ranges.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality);
	for (const { tag } of wanted) {
		const found = languages.find((language) =>
			tag === '*' ? !named.has(language) : language === languageOf(tag) && !refused.has(language),
		);
		if (found !== undefined) return found;
	}
	return languages[0];
}

function parseRange(text: string): LanguageRange | null {
	if (text.length > maxRangeLength) return null;
	const [tag = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
	if (!/^(?:\*|[a-z]{1,8}(?:-[a-z\d]{1,8})*)$/.test(tag)) return null;
	const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
	return /^(?:0(?:\.\d*)?|1(?:\.0*)?)$/.test(weight) ? { tag, quality: Number(weight) } : null;
}

function languageOf(tag: string): string {
	return tag.split('-', 1)[0] ?? tag;
}
