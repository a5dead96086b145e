/** Recognizes columns that say who may get mail, because ignoring one would activate unsubscribed people. */
import { plainLetters } from './column-names.js';

/** Strongest first. If a row has several states, the strongest counts. */
export const states = ['complained', 'bounced', 'unsubscribed', 'unconfirmed', 'active'] as const;
export type State = (typeof states)[number];

export const stateCells: Readonly<Record<State, readonly [string, string | null]>> = {
	complained: ['false', 'COMPLAINED'],
	bounced: ['false', 'HARDBOUNCED'],
	unsubscribed: ['false', 'UNSUBSCRIBED'],
	unconfirmed: ['false', 'UNCONFIRMED'],
	active: ['true', null],
};

/**
 * A column mapped to `state`. `yes` and `no`: the states that these answers mean. Null: the column name does not tell.
 */
export interface StateColumn {
	index: number;
	yes: State | null;
	no: State | null;
	words: Readonly<Record<string, State>>;
}

export function plainWord(text: string): string {
	return plainLetters(text).replace(/[\s\p{P}\p{Cf}]/gu, '');
}

const wordsOf = (text: string) => text.split(/\s+/).map(plainWord);

const wordsOfStates: Readonly<Record<State, string>> = {
	active: `active subscribed confirmed subscriber optin optedin aktiv aktive aktiver angemeldet abonniert bestätigt eingetragen actif abonné abonnée inscrit inscrite confirmé activo activa suscrito suscrita confirmado confirmada attivo attiva iscritto iscritta
		confermato confermata ativo ativa inscrito inscrita assinante actief ingeschreven aangemeld bevestigd aktywny aktywna zapisany zapisana potwierdzony potwierdzona prenumererar prenumerant bekräftad 有効 購読中 登録済み 登録済 配信中`,
	unsubscribed: `unsubscribed unsubscribe unsub optout optedout listunsubscribe neversubscribed notsubscribed abgemeldet abbestellt ausgetragen abmeldung désabonné désabonnée désinscrit désinscrite désabonnement désinscription dadodebaja dadadebaja baja desuscrito
		desuscrita cancelado cancelada disiscritto disiscritta disiscrizione cancellato cancellata descadastrado descadastrada descadastro uitgeschreven afgemeld uitschrijving wypisany wypisana wyrejestrowany rezygnacja avregistrerad avprenumererad avanmäld
		avprenumererat 配信停止 退会 退会済み 解除 解除済み 購読解除 登録解除 停止`,
	bounced: `bounced bounce hardbounce hardbounced hard cleaned undeliverable undelivered unreachable unzustellbar gebounct zurückgewiesen rebond rebondi rejeté nondistribuable rebotado rebote devuelto rimbalzato rimbalzo devolvido devolvida rejeitado gebounced
		onbestelbaar odbity odbita odrzucony niedoręczalny studsad studsade obeställbar バウンス 不達 配信不能 エラー`,
	complained: `complained complaint complaints spam spamcomplaint spamreport markedasspam reportedasspam abuse abusecomplaint beschwerde spambeschwerde plainte signalécommespam queja denunciado segnalato segnalatocomespam reclamo denúncia reclamação klacht
		spamklacht skarga zgłoszonyjakospam klagomål spamanmäld 苦情 迷惑メール スパム スパム報告`,
	unconfirmed: `unconfirmed notconfirmed pending unverified waiting unactivated unbestätigt nichtbestätigt ausstehend nonconfirmé nonconfirmée enattente sinconfirmar noconfirmado pendiente nonconfermato inattesa nãoconfirmado pendente onbevestigd nietbevestigd
		niepotwierdzony niepotwierdzona oczekujący obekräftad väntande 未確認 確認待ち 仮登録`,
};
const knownWords: ReadonlyMap<string, State> = new Map(
	states.flatMap((state) => wordsOf(wordsOfStates[state]).map((word): [string, State] => [word, state])),
);

/** Words that also describe orders and tasks. Within a longer text, they do not mean that a person unsubscribed. */
const commonWords = new Set(
	wordsOf(`bounce cleaned unreachable undelivered cancelado cancelada cancellato cancellata baja 停止 解除 エラー hard spam devuelto devolvido devolvida abuse rejeté rejeitado odrzucony queja reclamo reclamação complaint complaints klacht skarga plainte beschwerde klagomål
		pending waiting unverified ausstehend enattente pendiente inattesa pendente oczekujący väntande 未確認 確認待ち`),
);
/** Other programs' words for people who get no mail. The user must map them with `--state-words`. */
const leaverWords = new Set(wordsOf('blocklisted blacklisted churned donotcontact donotemail'));
const otherWords = new Set(
	wordsOf(
		`enabled disabled blocked suppressed inactive dnc canceled cancelled junk softbounced softbounce rejected invalid failed withdrawn revoked refused declined denied expired`,
	),
);
const yesWords = new Set(
	wordsOf('1 true yes y x ✓ ✔ on ja j wahr an ein oui o vrai si sí s sim tak t prawda på はい 有 ○'),
);
const noWords = new Set(
	wordsOf(
		'0 false no n off null none nil na nein falsch aus non faux não nee nie nej falso uit av いいえ 無 ×',
	),
);

/** The order matters: the first match counts, and `unsubscribed` contains `subscribed`. */
const partsOfNames = {
	unconfirmed:
		'unconfirm|pending|unverif|notconfirm|unbestatigt|sinconfirmar|onbevestigd|niepotwierdz|obekraftad|未確認',
	bounced: `bounce|cleaned|cleantime|cleancampaign|undeliver|unzustellbar|rucklauf|rebond|rebot|rimbalz|devolvid|odbit|studsa|バウンス|不達|配信不能|エラー`,
	complained: 'complain|spam|beschwerde|plainte|queja|denuncia|klacht|skarga|klagomal|苦情|迷惑',
	unsubscribed: `unsub|optout|optedout|donot(contact|e?mail|allow|send)|noe?mail|^dnc|dnc$|blacklist|blocklist|robinson|notsubscribed|hasleft|left(at|on)$|^(has)?quit(at|on|date)?$|stoptime
		|abgemeldet|abmeld|abbestell|ausgetragen|austrag|austritt|kundig|widerruf|widersproch|desabon|desinscri|listenoire|resili|desuscri|dadodebaja|fechadebaja|^baja$|listanegra|disiscri|listanera|disdett
		|descadastr|uitgeschreven|uitschrij|afgemeld|afmeld|opzeg|opgezegd|zwartelijst|wypis|wyrejestr|rezygn|wypowiedz|czarnalista|avregistr|avprenumer|avanmal|uppsagd|uppsagning|svartlist|停止|退会|解約|解除|拒否|ブロック|無効|ブラックリスト`,
	gone: `invalid|ungultig|blocked|suppress|cancell?ed|excluded|inactive|disabled|deactivated|banned|deleted|archived|removed|revoked|withdrawn|churn|^onhold|held$|^held
		|sperr|blockiert|gelosch|inaktiv|deaktiviert|desactiv|inactif|bloque|supprime|inactiv|eliminad|cancelad|cancellat|disattiv|inattiv|bloccat|revocat|inativ|desativ|excluid|removid|geblokkeerd|inactief|gedeactiveerd|verwijderd|zablok|nieaktyw|usunie|blockera|borttag|sparra`,
	status: 'status|statut|estatus|ステータス',
	confirmed: 'confirm|verified|bestatigt|confermat|bevestigd|potwierdz|bekraftad|確認',
	subscribed: `subscribed|optin|optedin|consent|permission|accepts|abonniert|angemeldet|einwillig|zustimm|erlaubnis|abonnee?$|inscrit|suscrit|iscritt|consenso|autorizza|aangemeld|ingeschreven|toestemming|zapisan|zgoda|prenumerera|samtyck|購読|同意|許可|承諾|受信可`,
	newsletter: `^(is)?enabled$|mailable|mails?allowed|^sende?mails?$|^(is)?(active|aktiv|actif|activo|activa|attivo|attiva|ativo|ativa|actief|aktywny|有効)$|newsletter|mailing|marketing|subscri(be|ption)$|^(is)?(subscriber|abonnent|suscriptor|assinante|prenumerant|subskrybent)$|abonnement|abbonamento
		|suscripcion|assinatura|prenumeration|subskrypcja|^abo$|^doi$|gdpr|dsgvo|rgpd|^rodo|lgpd|^(darf|may|can|ok).*(mail|contact|schrieb|schreib)|contactable|contactallowed|angeschrieben|anschreib|kontaktier|contacte|contactar|contattare|contacteren|kontaktas|メルマガ|配信`,
	valid: '^(is|email)?(valid|gultig|valide|valido|geldig|wazny|giltig|有効)$',
	place: '^(state|estado|stato|staat|zustand|stan|etat|situacao|situacion|toestand|tillstand|状態|状況)$',
};
type Named = keyof typeof partsOfNames;

const answers: Readonly<Partial<Record<Named, readonly [yes: State, no: State]>>> = {
	unconfirmed: ['unconfirmed', 'active'],
	bounced: ['bounced', 'active'],
	complained: ['complained', 'active'],
	unsubscribed: ['unsubscribed', 'active'],
	gone: ['unsubscribed', 'active'],
	confirmed: ['active', 'unconfirmed'],
	subscribed: ['active', 'unsubscribed'],
	newsletter: ['active', 'unsubscribed'],
};

const general: ReadonlySet<Named> = new Set<Named>([
	...(['unconfirmed', 'bounced', 'complained', 'gone', 'status', 'confirmed'] as const),
]);
/** A column name with only these words beside the state, such as `Email status`, describes the state of a person. */
const personWords = new Set(
	wordsOf(`is has was been by from of to the all any for as not no in with meta date time timestamp day reason grund count counter number total flag status state global current last first soft hard double opt out only clean hold marked reported
		id ip email emails mail mails e address addresses user contact subscriber customer client member person people account profile recipient record list campaign campaigns newsletter marketing mailing subscription membership consent message type
		on at datum zeit am vom kontakt kunde kunden person adresse empfanger abonnent date le du de la fecha el en em data di il klient dnia den dataora correo contacto cliente usuario utente contatto usuario gebruiker klant op via anledning motivo motif raison reden powod`),
);

const names = Object.entries(partsOfNames).map(
	([name, parts]) => [name as Named, new RegExp(plainLetters(parts).replace(/\s/g, ''), 'u')] as const,
);

function nameOf(column: string): Named | null {
	const word = plainWord(column.replace(/^meta\./i, ''));
	return names.find(([, parts]) => parts.test(word))?.[0] ?? null;
}

/** True if another word in the name says that the state is not a person's: `Order status`, `Deleted messages`. */
function isOfOthers(column: string, name: Named): boolean {
	const parts = names.find(([one]) => one === name)?.[1];
	const words = column
		.replace(/(\p{Ll})(?=\p{Lu})/gu, '$1 ')
		.split(/[^\p{L}\p{M}]+/u)
		.map(plainWord);
	return words.some((word) => word !== '' && !parts?.test(word) && !personWords.has(word));
}

export function stateColumn(column: string, index: number, words: StateColumn['words']): StateColumn {
	const [yes, no] = answers[nameOf(column) ?? 'status'] ?? [null, null];
	return { index, words, yes, no };
}

const time = /^\d{4}[-./年]\d\d?|^\d{1,2}[./]\d{1,2}[./]\d{2,4}|^\d{9,13}$/;
const zeroTime = /^0000-00-00/;

/** Null: the cell has no state. `unknown`: an unknown word, or a blank cell of a column whose `yes` is `active`. */
export function stateOf(cell: string, { words, yes, no }: StateColumn): State | 'unknown' | null {
	const word = plainWord(cell);
	if (Object.hasOwn(words, word)) return words[word] ?? null;
	if (word === '') return yes === 'active' ? 'unknown' : null;
	const known = knownWords.get(word);
	if (known !== undefined) return known;
	const is = (some: ReadonlySet<string>, form: RegExp) => some.has(word) || form.test(cell.trim());
	const within = () => states.find((state) => statesWithin(cell).includes(state));
	return (is(noWords, zeroTime) ? no : is(yesWords, time) ? yes : within()) ?? 'unknown';
}

/** Finds words such as `unsubscribed` at the start of list items, or anywhere in items of up to three words. */
function wordsWithin(cell: string): string[] {
	return cell.split(/[,;|/\n]/).flatMap((item) => {
		const words = item.split(/[^\p{L}\p{M}]+/u).filter((word) => word !== '');
		const begins = words.slice(0, words.length > 3 ? 1 : 3);
		const runs = begins.flatMap((_, from) =>
			[1, 2, 3].map((length) => words.slice(from, from + length).join('')),
		);
		return runs.map(plainWord).filter(isLeaver);
	});
}

function statesWithin(cell: string): State[] {
	return wordsWithin(cell).flatMap((word) => knownWords.get(word) ?? []);
}

function isLeaver(word: string): boolean {
	return leaverWords.has(word) || ((knownWords.get(word) ?? 'active') !== 'active' && !commonWords.has(word));
}

export function stateOfRow(
	row: readonly string[],
	columns: readonly StateColumn[],
): State | 'unknown' | null {
	const found = columns.map((column) => stateOf(row[column.index] ?? '', column));
	return found.find((state) => state === 'unknown') ?? states.find((state) => found.includes(state)) ?? null;
}

export interface Sampled {
	cells: readonly (readonly string[])[];
	rows: number;
	isWhole: boolean;
}

export function tellsOfLeaver(cell: string): boolean {
	return isLeaver(plainWord(cell)) || wordsWithin(cell.slice(0, 1_000)).length > 0;
}

/** German words for the status of a family, order, payment, delivery or invoice. */
const ofOthers = /(?:familien|bestell|zahlungs?|auftrags?|liefer|versand|rechnungs)status/;

export function tellsState(column: string, index: number, { cells, rows, isWhole }: Sampled): boolean {
	const filled = cells[index] ?? [];
	const words = filled.map(plainWord);
	const isState = (word: string) => knownWords.has(word) || leaverWords.has(word) || otherWords.has(word);
	const isAnswer = (word: string) => isState(word) || yesWords.has(word) || noWords.has(word);
	if (filled.length > 0 && filled.every((cell) => /^https?:/i.test(cell))) return false;
	if (filled.some(tellsOfLeaver)) return true;
	if (filled.length > 0 && words.filter(isState).length >= filled.length * 0.9) return true;
	const name = nameOf(column);
	if (name === null) return false;
	// `State` may be a place, such as `ON` for Ontario, and `Status` may be that of an order.
	const isGeneral = general.has(name) && (isOfOthers(column, name) || ofOthers.test(plainWord(column)));
	if (name === 'place' || isGeneral) return words.some(isState);
	if (name === 'newsletter' || name === 'valid') return words.some(isAnswer);
	// A time or IP address in every row belongs to the subscription, so it does not tell who unsubscribed.
	const isFull = isWhole && rows > 0 && filled.length === rows;
	const isTimes =
		isFull && filled.every((cell) => time.test(cell) || /^[\d.]{7,}$|^[\da-f:]{6,}$/i.test(cell));
	return !(isTimes && (name === 'subscribed' || name === 'confirmed'));
}

export function wordState(cell: string): State | null {
	return knownWords.get(plainWord(cell)) ?? null;
}
