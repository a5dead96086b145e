/** What systems write where they give no telling code: data, asked only then. Lines of at most 500 characters. */

export interface Fault {
	text: RegExp;
	why: string;
}

/**
 * The address is no good, whatever else is told. Only what can be read in no other way: a wrong suppression loses a
 * reader for good. "User unknown" is not among them: filters say it of mail they have read, after DATA.
 */
export const addressFaults: readonly Fault[] = [
	{
		text: /\b(?:host|domain)(?: name)? (?:is )?(?:unknown\b(?! error)|does not exist|doesn't exist)|\b(?:unknown|no such|non-?existent) (?:host|domain)\b|\bhost [\w.-]{1,253} not found\b|\bthe domain [\w.-]{1,253} could(?:n['’]t| not) be found\b/i,
		why: 'the text says that the host does not exist',
	},
	{
		text: /\bunrouteable (?:mail )?(?:address|domain)\b/i,
		why: 'the text says that no host takes the address',
	},
	{
		text: /\b(?:invalid user address|recipient name is not recognized|no mailbox here by that name|(?:mailbox|user|e-?mail address) (?:does not|doesn't) exist)\b/i,
		why: 'the text says that there is no such mailbox',
	},
	{
		text: /(?:unbekannter (?:empf(?:ä|ae)nger|benutzer)|(?:empf(?:ä|ae)nger|benutzer) (?:ist )?unbekannt|(?:utilisateur|destinataire|adresse) inconnue?|(?:usuario|destinatario|utente) (?:desconocido|desconhecido|sconosciuto))/i,
		why: 'the text says that there is no such mailbox',
	},
	{
		text: /(?:нет такого пользователя|пользователь не (?:найден|существует)|(?:почтовый )?ящик не (?:найден|существует)|宛先不明|(?:ユーザー?|アドレス)(?:は|が)(?:存在しません|見つかりません)|用户不存在|收件人不存在)/i,
		why: 'the text says that there is no such mailbox',
	},
];

/** At which command the server said no: at RCPT it is about the address, later it may be about the message. */
export const atRecipient = /\bRCPT(?:[ _]TO\b| command)|\bdoes not like recipient\b|\brejected recipient\b/i;
export const afterRecipient =
	/\b(?:DATA|TEXT) command|\bend of (?:the )?data\b|(?:^|\s)>>> DATA\b|\bour (?:final )?DATA\b|\bafter I sent the message\b/i;

/** Another fault, beside which a text that speaks of an unknown user is not believed. */
export const otherFaults: readonly Fault[] = [
	{
		text: /\b(?:mailbox|account|folder|inbox|disk) ?(?:is )?(?:full|over)\b|\b(?:quota|storage|mail size limit)\b|\bexceed(?:s|ed)? (?:the )?(?:allowed|maximum|local limit)|\bover ?quota\b/i,
		why: 'a full mailbox',
	},
	{
		text: /\b(?:disabled|suspended|inactive|deactivated|locked|discontinued)\b/i,
		why: 'an account out of use',
	},
	{
		text: /\b(?:spam|blocked|block ?list|blacklist(?:ed)?|black ?list|denied|policy|reputation|relay(?:ing)?|not allowed|unauthenticated|dmarc|spf)\b/i,
		why: 'a policy',
	},
	{
		text: /\b(?:try again|temporar(?:y|ily)|timed? ?out|deferred|greylist(?:ed)?|retry)\b/i,
		why: 'something that passes',
	},
];
