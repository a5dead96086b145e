import { reservedNames, variablePattern } from '../api/inputs.js';

export function fold(name: string): string {
	return name
		.normalize('NFKC')
		.toLowerCase()
		.replace(/[\s\p{P}\p{Cf}]/gu, '');
}

/** Maps letters that Unicode does not decompose, and Greek and Cyrillic letters, to Latin ones. */
const latinLetters: ReadonlyMap<string, string> = new Map(
	(
		'ßss æae œoe øo łl đd ıi ' +
		'αa βv γg δd εe ζz ηi θth ιi κk λl μm νn ξx οo πp ρr σs ςs τt υy φf χch ψps ωo ' +
		'аa бb вv гg дd еe жzh зz иi кk лl мm нn оo пp рr сs тt уu фf хkh цts чch шsh щshch ъ ыy ь эe юyu яya ' +
		'єye іi ґg јj љlj њnj ћc ђdj џdz'
	)
		.split(' ')
		.map((pair) => [pair.slice(0, 1), pair.slice(1)]),
);

export function plainLetters(text: string): string {
	return text
		.normalize('NFKD')
		.toLowerCase()
		.replace(/\p{M}/gu, '')
		.replace(/[^\x00-\x7f]/gu, (letter) => latinLetters.get(letter) ?? letter);
}

/** `Umsatz (€)` becomes `umsatz`, `Πόλη` `poli`, `2024` `_2024`. Null if the result is invalid or reserved. */
export function variableOf(column: string): string | null {
	const plain = column.replace(/^meta\./i, '');
	if (variablePattern.test(plain)) return isFreeVariable(plain) ? plain : null;
	const words = plainLetters(plain).split(/[^\p{L}\p{N}]/u);
	const variable = words.filter((word) => word !== '').join('_');
	const free = /^\d/.test(variable) ? `_${variable}` : variable;
	return isFreeVariable(free) ? free : null;
}

export function isFreeVariable(variable: string): boolean {
	return variablePattern.test(variable) && !reservedNames.has(variable);
}

const namesOf = (text: string): ReadonlySet<string> => new Set(text.normalize('NFKC').split(/\s+/));

/** Other names of e-mail columns, in several languages, folded like headers. */
export const emailNames = namesOf(
	`emailid emails contactemail emailadresse mailadresse emailadres epost epostadress epostadresse emailadress sähköposti sähköpostiosoite netfang courriel adressecourriel adresseemail adressemail adresseélectronique adressedecourriel adressedemessagerie
		mél correo correoelectrónico correoelectronico direccióndecorreo direccióndecorreoelectrónico direcciondecorreoelectronico direccióndeemail correuelectrònic endereçodeemail enderecodeemail correioeletrónico correioeletrônico indirizzoemail
		indirizzodiposta indirizzodipostaelettronica postaelettronica adresădeemail adresadeemail adresemail adresmailowy pocztaelektroniczna emailováadresa emailovaadresa emailcím emailcim epošta eposta epostaadresi ηλεκτρονικόταχυδρομείο διεύθυνσηemail
		электроннаяпочта адресэлектроннойпочты элпочта эладрес емейл имейл имэйл електроннапошта адресаелектронноїпошти електроннапоща имейладрес メール メールアドレス eメール eメールアドレス 電子メール 電子メールアドレス 邮箱 邮箱地址 电子邮件 电子邮箱 电子邮件地址 電子郵件 電子信箱 이메일 이메일주소 전자우편 البريدالإلكتروني
		البريدالالكتروني דואל דוארלקטרוני דואראלקטרוני`,
);

const joiner = '+';

/** Splits `First+Last` of `--map "First+Last=name"`. A single column may be named `A+B`, so the longest name wins. */
export function partsOf(
	source: string,
	find: (name: string) => string | undefined,
): readonly string[] | null {
	const words = source.split(joiner);
	if (words.length > mostParts) return null;
	const parts: string[] = [];
	for (let from = 0; from < words.length; ) {
		let end = words.length;
		let column: string | undefined;
		for (; end > from && column === undefined; end -= 1) {
			const name = words.slice(from, end).join(joiner).trim();
			column = name === '' ? undefined : find(name);
		}
		if (column === undefined) return null;
		parts.push(column);
		from = end + 1;
	}
	return parts.length > 1 ? parts : null;
}

const mostParts = 20;

export function canBeJoined(target: string): boolean {
	return target === 'name' || target.startsWith('meta.');
}

export interface Place {
	index: number;
	joined?: readonly number[];
}

export function cellOf(row: readonly string[], { index, joined }: Place): string {
	if (joined === undefined) return row[index] ?? '';
	const cells = [index, ...joined].map((at) => row[at]?.trim() ?? '');
	return cells.filter((cell) => cell !== '').join(' ');
}

export function mappedName(header: readonly string[], { index, joined = [] }: Place): string {
	return [index, ...joined].map((at) => (header[at] ?? '').trim()).join(` ${joiner} `);
}
