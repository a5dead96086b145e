/** Words of a reply that name the cause of a refusal. `classify` removes addresses before it searches the text. */

const anyOf = (...parts: readonly string[]): RegExp => new RegExp(parts.join('|'), 'iu');

const few = (most: number): string => `(?:[ :,'"-]{1,3}[^\\s.;!?]{1,40}){0,${most}}[ :,'"-]{1,3}`;

const refused =
	"(?:reject|den(?:y|ied)|block|refus|invalid|verif|unverif|fail|forbid|prohibit|disallow|suspend|disabled|paused|exceed|reached|bad\\b|banned|unauthori|must\\b|required|mismatch|unresolv|limit|quota|not\\b|no permission|cannot|can't|isn't|doesn't|does not|unknown|no such|inconnu)";

/** Matches refusals that every recipient would get (api-decisions 45), but not "return to sender". */
export const aboutSender = anyOf(
	`\\brelay(?:ing|ed)?${few(3)}(?:denied|reject|refus|prohibit|disallow|forbid|restrict|disabled|not\\b|quota|limit|nicht|verboten|interdit|négad|запрещ)`,
	"\\b(?:unable|not (?:allowed|permitted|authori[sz]ed|configured|able)|cannot|can't|refuse|failed|denied|credentials) (?:\\w{1,20} ){0,4}relay|\\b(?:do|does|will) not (?:\\w{1,20} )?relay|\\b(?:don't|won't|no|not an?|open) (?:open )?relay|rcpthosts|\\brelay non |relay?age (?:interdit|refus)|\\brelais (?:interdit|refus|non)|reenvío (?:denegad|no )|ретрансляц|中[継继繼]|릴레이",
	'(?:weiterleit\\w*|reenv[ií]o|retransmis\\S*|inoltro|doorsturen|przekazywanie|relä\\S*|vidarebefordr\\S*|aktarma|пересылка|релей)(?: \\S{1,20}){0,3} (?:nicht|verweiger|no\\b|não|non|niet|zabron|nekas|redded|запрещ|negad|negat)',
	'kein relay|no se permite el reenv|リレー.{0,6}(?:許可|拒否)|(?:转发|轉發|转寄|中[继繼]).{0,4}(?:拒[绝絕]|不允[许許]|禁止)|不允[许許](?:转发|轉發|中[继繼])|expeditor\\w* nu|άγνωστος αποστολέας',
	'(?:black|block|deny|ban|drop)[ -]?list(?!ed (?:url|link))|\\b(?:rbl|dns[bw]l|rhsbl)\\b|\\.[bx]l\\.|spamhaus|spamcop|\\bsorbs\\b|barracudacentral|senderbase|senderscore|uceprotect|abuseat|proofpoint\\.com|blocked using|reputation|sperrliste|schwarze liste|liste noire|lista ne(?:g)?ra|zwarte lijst|czarn\\S{1,4} li|ч[её]рн\\S{1,4} спис|ブラックリスト|黑名[单單]|블랙리스트',
	`\\b(?:client(?: host)?|ip(?: address)?|your (?:ip|host|server|mail ?server|domain|network|organi[sz]ation|isp|country|account|message rate))\\b${few(6)}(?:${refused}|listed|too many)`,
	'\\b(?:invalid|banned|blocked|bad|unauthori[sz]ed) (?:sending )?ip\\b|traffic not accepted|from the following ip|your (?:sending )?(?:ip|host) (?:is|has)|adresse ip\\S{0,2}(?: \\S{1,20}){0,2} bloqu',
	'authenticat|auth(?:entication)? (?:is )?(?:required|failed)|smtp auth|\\b(?:spf|dkim(?!-sig)|dmarc)\\b|\\bstarttls\\b|credentials|pop before smtp|authentifi|authentisi|autentic|autentific|uwierzytel|аутентификац|авторизац|認証|认证|認證|身份验证|인증',
	`(?<!\\bto (?:the |its |original )?)\\b(?:sender'?s?|mail[ -]?from|from[ -](?:address|header|domain|field)|from:|envelope[ -](?:from|sender)|return[ -]path|originator|sending (?:domain|address|host|server|ip|mta|user|account|mailbox|identity)|outgoing|outbound)\\b${few(6)}${refused}`,
	`\\b(?:bad|invalid|unknown|unverified|unauthori[sz]ed|illegal|forged|spoofed|blocked|rejected|refused|malformed|verify|unconfigured|unrout(?:e)?able|unresolvable|denied|banned)(?: \\S{1,20}){0,2} (?:sender|sending (?:domain|address)|mail from|from (?:address|header|domain))\\b`,
	'\\bnot (?:allowed|permitted|authori[sz]ed|entitled|eligible|owned)(?: \\S{1,20})? (?:send|submit|use|mail|by|as|from)\\b|permissions? to (?:send|use|submit)|send[ -]?as[ -]?denied|\\bsend as\\b|\\b(?:sender|from|send\\w{0,4})\\b.{1,40} on behalf|not (?:own|belong)\\w{0,3} (?:by|to)\\b|must (?:equal|match) |allowed-?senders|sender signature',
	'^(?!.*\\brecipient (?:address|verif)).*\\b(?:not (?:been |yet been )?verified|unverified|verification (?:failed|required)|identities failed)|\\bsandbox\\b',
	'\\bsending (?:\\w{1,20} ){0,3}(?:suspended|paused|disabled|blocked|limits?|quota|rate)|\\b(?:daily|hourly|monthly) (?:\\w{1,20} ){0,3}(?:sending|message|e-?mail|mail|relay|user sending)s? (?:limit|quota)|emails? per (?:hour|day)|unusual sending',
	'\\b(?:helo|ehlo)\\b|reverse (?:dns|lookup|hostname)|\\brdns\\b|\\bptr\\b',
	'absender|expéditeur|expediteur|émetteur|remitente|remetente|mittente|afzender|nadawc|avsändar|afsender|avsender|lähettäj|odesílatel|odosielate|gönderen|feladó|отправител|відправник|送信者|送信元|差出人|发件人|發件人|寄件[者人]|发信人|발신자|보낸 ?사람',
	"nicht (?:berechtigt|autorisiert)|keine berechtigung|(?:non|pas|n'êtes pas) autoris|no (?:está )?autorizad|não (?:está )?autorizad|non autorizzat|niet (?:geautoriseerd|gemachtigd)|nie (?:masz )?uprawn",
);

/** Enhanced codes about the sender: RFC 3463 s.3.2 and s.3.8; 5.2.252 and 5.1.90 of Microsoft, 5.4.5 of Google. */
export const senderCode = /^5\.(?:7\.\d+|1\.7|1\.8|1\.90|2\.252|4\.5)$/;

export const aboutContent =
	/\b(?:spam\w{0,8}|junk|unsolicited|ube|uce|phish\w{0,4}|virus(?:es)?|malware|infected|suspicious|content|contains?|attachments?|policy|policies|urls?|links?|heuristic\w{0,2}|inappropriate|header|bulk)\b|спам|スパム|迷惑メール|垃圾|内容|內容|contenu|inhalt|contenido|conteúdo|contenuto|indésirable|pourriel|richtlinie|стоп-слов/i;

/** Matches a noun for the recipient and, in the same sentence, words that say that it does not exist. */
const missing = (nouns: string, faults: string): string =>
	`(?:${nouns})[^\\s.;!?@]{0,12}(?:${few(4)}| ?)(?:${faults})`;

const recipient =
	'\\b(?:user(?: ?name| id)?|recipient|mailbox|mail ?drop|person|address(?:ee)?|account|login|local[ -]part|e-?mail|alias)(?: address| account| name)?\\b';

const noHost =
	"\\b(?:host|domain)(?: ?name)?(?:[ :]{1,2}(?:or domain name|of \\S{1,40}|[\\w.-]{1,40}))? (?:is |was |does )?(?:unknown|not found|not exist|doesn't exist|invalid)(?!,? try)|\\b(?:no such|unknown|non-?existent|invalid) (?:host|domain)\\b|couldn't find any host named|\\bnxdomain\\b|\\bunrout(?:e)?able address";

/** Does not match "mailbox unavailable", "disabled" and "inactive", because only the code tells the cause. */
export const unknownAddress = anyOf(
	`\\b(?:unknown|invalid|non-?exist[ea]nt|unrecogni[sz]ed|no such|bad destination) (?:local |destination )?(?:user|recipient|mailbox|address|account|person|e-?mail|alias|login|local[ -]part)`,
	missing(
		recipient,
		"unknown|(?:is |was |are )?not (?:be )?(?:known|found|exist|recogni[sz]ed|listed|registered|valid\\b|a (?:valid|known|registered|local) (?:user|mailbox|address|recipient|e-?mail|account))|(?:does|do|did|could|can)(?: not|n't) (?:exist|be found)|cannot be found|can't be found|no longer (?:exist|valid|on server|here)|unrecogni[sz]ed|non-?existent",
	),
	"\\bno (?:such )?(?:mailbox|user|account|recipient|one|body|person|address)\\b(?: \\S{1,12}){0,3} (?:here|found|exists?|(?:by|with|of|under) (?:that|this) (?:name|address))|\\bno(?:body| one) here\\b|n(?:'t|ot) have an? (?:\\S{1,60} )?(?:account|mailbox|user)\\b|\\bnot (?:our customer|a (?:valid|known|registered) (?:user|mailbox|address|recipient|e-?mail|account))|recip(?:ient)?notfound",
	noHost,
	missing(
		'empfänger|benutzer|nutzer|postfach|adresse|teilnehmer|konto',
		'unbekannt|ungültig|nicht (?:gefunden|bekannt|vorhanden|existent)|existiert nicht|gibt es nicht',
	),
	'unbekannte[rns]? (?:empfänger|benutzer|nutzer|adress|postf)|kein(?:en?)? (?:solche[rns]? )?(?:postfach|benutzer|empfänger|nutzer)|existiert nicht',
	missing(
		'utilisateur|destinataire|bo[iî]te|compte|adresse',
		"inconnu|invalide|inexistant|introuvable|n['’]existe (?:pas|plus)|non trouv",
	),
	'(?:utilisateur|destinataire) inconnu',
	missing(
		'usuario|destinatario|buz[oó]n|cuenta|direcci[oó]n|usu[aá]rio|destinat[aá]rio|caixa|conta|endere[cç]o|utente|casella|indirizzo',
		'de[sz]conoci?d|desconhecid|sconosciut|inexistente|inesistente|inv[aá]lid|n(?:o|ão|ao|on) (?:exist|esist|(?:ha sido |foi |fue |è stat[oa] )?(?:encontrad|trovat)|v[aá]lid)',
	),
	'no existe (?:el |la |ese |este )?(?:usuario|destinatario|buz|cuenta|direcc)|não existe (?:o |este )?(?:usu|destin|conta)',
	missing('gebruiker|ontvanger|postbus|adres|geadresseerde', 'onbekend|bestaat niet|niet gevonden'),
	missing('użytkownik|odbiorc|skrzynk|adres|konto', 'nieznan|nie istnieje|nie znalezion|nie został'),
	'nieznan\\S{1,3} (?:użytkownik|odbiorc|adres)|nie ma takiego (?:użytkownika|konta|adresu)|onbekende (?:gebruiker|ontvanger)',
	missing('uživatel|příjemce|schránk|adresa', 'neexistuje|neznám|nenalezen'),
	'(?:okänd|ukendt|ukjent|tuntematon|neznám\\S|ismeretlen|bilinmeyen) (?:användar|mottagar|modtager|mottaker|bruger|bruker|vastaanottaja|käyttäjä|uživatel|příjemce|felhasznál|címzett|kullanıcı|alıcı)|böyle bir (?:kullanıcı|alıcı|adres|hesap) yok',
	'(?:utilizator|destinatar|adresă)\\S{0,3} (?:necunoscut|inexistent)|άγνωστος (?:χρήστης|παραλήπτης)|ο χρήστης δεν υπάρχει|(?:המשתמש|הנמען|תיבת הדואר) (?:לא קיים|אינו קיים|לא קיימת|לא נמצא)|(?:المستخدم|المستلم|صندوق البريد) غير (?:موجود|معروف)',
	missing(
		'användar|mottagar|modtager|bruger|bruker|mottaker|adress|käyttäjä|vastaanottaja|kullanıcı|alıcı|hesap|felhasznál|címzett',
		'finns inte|okänd|findes ikke|ukendt|finnes ikke|ukjent|tuntematon|ei löydy|ei ole olemassa|bulunamadı|bilinmiyor|mevcut değil|ismeretlen|nem létezik',
	),
	missing(
		'пользовател|получател|адрес|ящик|аккаунт|користувач',
		'не (?:существу|найден|зарегистр|обнаруж|існує|знайден)|неизвест|невідом',
	),
	'(?:нет такого|неизвестн\\S{1,3}|несуществующ\\S{1,3}) (?:пользовател|получател|адрес|(?:почтов\\S{1,3} )?ящик)',
	'(?:宛先|ユーザー?|アドレス|受信者|メールボックス)[^。]{0,20}(?:存在しま|存在しない|見つかりません|不明|ありません)',
	'(?:用[户戶]|收件[人者]|[邮郵信]箱|地址|[账帐帳][号號户戶])[^。]{0,20}(?:不存在|未找到|找不到|[无無]效|未[知註注])|[无無查]无?此(?:用[户戶]|人)',
	'(?:사용자|수신자|받는 ?사람|계정|메일함|편지함|주소)[^.]{0,20}(?:없|존재하지|찾을 수|알 수)|존재하지 않는 (?:사용자|수신자|계정|메일)',
);

const senderWords =
	'\\bsender\\b|\\bfrom(?::| user| domain| address| must)|mail from|originat|reverse[ -]path|call(?:out|back)';

/** Causes such as a full mailbox or a temporary fault. The server's code may still say that the address is bad. */
const otherCauses: readonly string[] = [
	'\\b(?:at a rate|(?:sending|message|mail|receiv\\w{1,3}|connection|hourly|daily) (?:rate|limits?)|rate[ -]?limit\\w{0,3}|too (?:many|much|fast|frequent\\w{0,2}|large|big|quickly)|throttl\\w{1,3}|volume|reputation|policy|policies|prohibited|spam\\w{0,8}|junk|unsolicited|phish\\w{0,4}|virus|malware|suspicious|blocked|banned|(?:over|exceed\\w{0,3}|out of) (?:\\w{1,12} ){0,3}(?:quota|limits?|size|storage)|quota|(?:mail ?box|inbox|folder) (?:is |was )?(?:over)?full|(?:message|mail|size)(?: \\w{1,12}){0,2} (?:exceed\\w{0,3}|limit\\w{0,3})|size limit|storage|greylist\\w{0,3}|temporar\\w{1,5}|(?<!spaces and )try again|try later|again later|access denied|(?:mail|forwarding) loops?|loops? (?:back|detected)|too many hops|(?:user|recipient|address|mailbox|account) (?:may|might|could) (?:be|have|not)|perhaps|content (?:rejected|filter|denied))\\b|сп[ао]м|スパム|迷惑メール|垃圾邮件',
	'\\b(?:your|ihre?r?|votre|vos|vuestr[ao]|su|tu|uw|sua|vostro) (?:\\S{1,12} )?(?:ip\\b|e-?mail\\b|address|account|host|server|domain|mx\\b|konto|adresse|compte|cuenta|indirizzo|conto|conta|вашего)|вашего? (?:сервер|адрес)',
	'\\bip[- ]?(?:address|adress|адрес)|adresse ip|\\bip \\S{0,3}\\d|unknown host \\[?\\d|log ?in\\b|registered (?:user|sender)|de envío|보내는',
	'\\bldap\\b|directory (?:lookup|service|server|error|time)|lookup (?:error|fail|time)|timed? ?-?out|hop count|for now|white ?list|message-id|\\bheader\\b|reply-to|\\bformat\\b|postfach (?:ist )?(?:voll|frei)|kein postfach|pleine?\\b|llen[oa]\\b|pien[oa]\\b|空き|容量|空[间間]|공간|용량',
];

const otherCause = anyOf(...otherCauses);

const namesSender = anyOf(senderWords);

export const notAboutAddress = anyOf(senderWords, ...otherCauses);

const senders =
	'(?:sender|client|helo|ehlo|mail from|return[ -]path|envelope[ -]from|from address|absender\\w*|expéditeur|remitente|mittente)';

const refusesSender = anyOf(
	`\\b${senders}(?: \\S{1,30}){0,2}[ :,'"-]{1,3}(?:is |was |has been )?(?:reject|refus|den(?:y|ied)|block|invalid|unverif|verif|forbid|prohibit|unknown|abgelehnt|rechaz|rifiut)`,
	`\\b(?:reject|refus|den(?:y|ied)|block|invalid|unverified|bad|unknown)\\w*(?: \\S{1,20}){0,2} ${senders}|verif\\w*(?: \\S{1,20}){0,2} fail|call(?:out|back)`,
);

const refusesSession = anyOf(
	'auth\\w*(?: is)? (?:required|failed)|relay(?:ing)?(?: access)? (?:denied|not)|(?<!not )\\blisted\\b|blocked using|(?:black|block|deny)[ -]?list',
);

const clauseEnds = /[.;!?)\]|](?:\s|$)|\s(?:[([|]|--?\s)/;

/** Matches links and host names, which only say who refuses or where to read more. */
const links = /\bhttps?:\S+|(?<![\w.-])(?:[a-z\d-]+\.)+[a-z]{2,}\b\S*/g;

const aRecipient = new RegExp(recipient, 'i');

/**
 * Judges each clause, because a reply about an unknown recipient may also name the sender, the HELO name or a block
 * list. `hasCode`: the code says that the address is bad, so the text need not say it.
 */
export function isUnknownAddress(text: string, hasCode: boolean): boolean {
	const said = text.replace(links, '');
	if (otherCause.test(said) || refusesSender.test(said)) return false;
	const isAboutSender = (clause: string) => aboutSender.test(clause) || namesSender.test(clause);
	if (hasCode && !isAboutSender(text)) return true;
	const clauses = [text, ...said.split(clauseEnds)].filter((clause) => !isAboutSender(clause));
	if (hasCode && clauses.some((clause) => aRecipient.test(clause))) return true;
	return !refusesSession.test(said) && clauses.some((clause) => unknownAddress.test(clause));
}
