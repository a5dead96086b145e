/** Wordings of bounces that do not follow RFC 3464. */

/** Names in From that only a mail system has. */
export const systemNames =
	/mailer-?daemon|post_master@|mail(?:[ ._-]?deliver\w{0,6})?[ ._-]?(?:sub)?system|mail delivery|delivery (?:subsystem|system|status)|internet mail service|^"?(?:mailer|mta)\b/i;

/** Names of mail systems and of administrators, who also write mail that is not a bounce. */
export const roleNames =
	/postmaster|(?:mail|system|e-?mail) administrator|administrator@|\b(?:bounces?|e?mail-?server|mail-?gateway|listserv|microsoftexchange\w{0,64})@|^<?microsoft outlook/i;

export const machineWords =
	/(?:^|[^a-z])(?:smtp|mta|mail|mailer|mailserver|mailscan|daemon|gateways?|anti-?virus|server|system|service|robot|bot|no-?reply|do-?not-?reply|automat\w{0,8}|auto|delivery|notification|exchange|internet|administrator|admin|mail(?:gate|hub|relay|guard|filter)\w{0,8}|relay|filter|scanner|firewall|spam\w{0,8})(?=$|[^a-z])/i;

export const failures: readonly RegExp[] = [
	/undeliver(?:able|ed)|return(?:ed|ing) (?:mail|e-?mail|message|to sender)|failure (?:notice|notification|report)|deliver[a-z]{0,4} (?:(?:has|was|status|notification|report|problem|error|of your (?:mail|message))\W{1,3}){0,2}(?:fail(?:ed|ure)?|problem|error)|(?:mail|message)(?: delivery| status)? (?:fail(?:ed|ure)|problem|error|was aborted)|fail(?:ed|ure)? (?:mail|message|deliver)|delivery status notification|non-?deliver|error (?:sending|during|in) (?:your )?(?:mail|deliver)|mail system error|processing error|bounced (?:mail|message|e-?mail)|delivery (?:failure|error|problem|report)/i,
	/(?:could|can|was|were|has|have|is|are|did|will|do|does)(?: ?n[o']t|not| not)(?: yet)? (?:be |been |be able to |able to )?(?:deliver|reach|accept|forward|process|complete)/i,
	/(?:unable|not able|failed|failure|impossible|attempt\w{0,3}) (?:to (?:be )?)?(?:deliver|forward|send|complete|relay)|not delivered to|did not reach|trouble delivering|error (?:was )?(?:delivering|encountered|detected)|errors? (?:has |have )?(?:been )?(?:occurred|encountered|detected) (?:while|during|when|in)|encountered an error/i,
	/(?:permanent|fatal|delivery|transient non-fatal) (?:errors?|problems?)\b|delivery to the following recipients?|deliver[ey]ry? (?:failed|aborted)|has failed|rejected (?:recipient|by a remote|automatically)|automatically rejected|(?:mail|message)s? (?:(?:was|were|is|has been|you sent \S{1,99} was) )?(?:rejected|refused|bounced)|invalid (?:user|final|recipient|address)|requested action not taken|no valid recipients/i,
	/transcript of session|failure reasons|failed (?:recipients?|address)|mailbox exceeds allowed size|was aborted|contained one or more recipient addresses that were|has been returned|(?:recipient|user|mailbox|account|address)(?: name| you)? (?:is |was |has |does )?(?:unknown|not (?:known|found|exist|recognized|listed|valid)|over quota|full|invalid|rejected|disabled)|(?:over|exceed\w{0,3}) (?:its |their |the )?(?:disk |mail )?quota|no such (?:user|recipient|mailbox|account)|not exactly match|gave up|giv(?:en|ing) up/i,
	/配信(?:でき|に失敗|不能|エラー)|送信(?:でき|に失敗)|届け(?:られ|る)|お届けでき|エラーメール|不達|宛先不明|存在しません|не (?:может быть|был[ао]?|удалось|удается|смог\w{0,3}) (?:доставл|достав)|не ?доставлен|недоставк|ошибк\w{0,3} доставки|zustell(?:ung|bar)|nicht (?:zugestellt|ausgeliefert|übermittelt)|konnte nicht|impossible de (?:remettre|délivrer|distribuer|livrer)|non[ -](?:remis|délivr|distribu)|n'a (?:pas )?(?:pu|pas) |pas pu (?:être|etre)|échec|no (?:se (?:pudo|ha podido|puede)|pudo|ha (?:sido|podido)) |no entregado|fallo (?:de|en) (?:la )?entrega|não (?:foi|pôde|pode)|falha na entrega|impossibile (?:consegnare|recapitare|inviare)|non (?:è stato|e' stato|può|recapitat|consegnat)|mancat[ao] (?:consegna|recapito)|niet (?:worden|bezorgd|afgeleverd)|onbestelbaar|kunde inte|kunne ikke|ei voitu|nie (?:można|mógł|został\w?|dostarczon)|nedoručiteln|nelze doručit|kézbesít|teslim edileme|退信|无法(?:投递|送达|发送)|無法(?:投遞|傳送|遞送)|投递失败|发送失败|被退回|系统退信|전송 실패|배달/i,
];

export const delays: readonly RegExp[] = [
	/has been delayed|is delayed|delayed for more|(?:message|mail) delayed|(?:has|have|was|could) not (?:yet been|yet be|been yet) delivered|not yet been delivered|delivery(?: is| has been)? delayed|only a temporary failure|still being retried|will be (?:retried|tried again)|delay reason|\(delay\)|^warning: message .{0,200} delayed|warning message only|this is a warning only|delivery status notification: warning|(?:delivery|attempts?)[^.]{0,60} will (?:continue|be continued)|will (?:continue|keep) (?:to try|trying|attempting)|we(?:'ll| will) keep trying|queued? for (?:later|retry)|noch nicht (?:zugestellt|ausgeliefert)|verzögert|(?:remise|livraison) (?:est )?retardée|retras(?:o|ado)|задерж|配信(?:が)?遅延|delivery delay/i,
];

/** OpenSMTPD 6.8 gives up with these words and the code 4.4.7. Other mail systems report a delay with 4.4.7. */
export const expiries: readonly RegExp[] = [/^envelope expired$/i];

/** Sentences that address the reader. The text below them does not describe a recipient. */
export const closings: readonly RegExp[] = [
	/^\s*(?:no action is required on your part|please note that this is only a temporary failure report)\b/i,
];

/** Excludes lines that announce a description of the failure, such as `error message follows`. */
const aboutFailure =
	'(?!.*\\b(?:log|error|address|recipient|reason|report|detail|session|transcript|explanation|notification|status|fail)\\w{0,12}\\b)';

export const separators: readonly RegExp[] = [
	/^[-=*_|\s]{0,80}(?:(?:below|this|enclosed|included|attached|here)(?: (?:this|the next) line)?(?: is|:)? (?:an? )?copy of (?:the|your)(?: original)? (?:message|mail)|(?:a )?copy of (?:the|your) (?:original )?message)/i,
	/^[-=*_|\s]{0,80}(?:(?:the )?header of the original message|original (?:message|mail)(?: info| headers?)?(?: follows\.?| as received[a-z ]{0,20})?|un(?:sent|delivered) (?:message|mail)(?: follows| below)?|(?:returned|rejected) (?:message|mail|e-?mail)(?: follows)?|message headers? follows?\.?|message text follows|undelivered message|bounced e-?mail:?|begin(?:ning)? (?:of )?(?:forwarded|returned|original) (?:message|mail)|a summary of the undelivered message[a-z ]{0,40})[-=*_|\s.:]{0,80}$/i,
	/^[-=*_|\s]{0,80}(?:the header of the original message is following)/i,
	new RegExp(
		`^${aboutFailure}[-=*_|\\s]{0,80}(?:(?:an?|the|your) )?(?:\\w{1,20} ){0,6}(?:message|mail|e-?mail|headers?|lines?)(?: \\w{1,20}){0,5} follows?[-=*_|:.\\s]{0,80}$`,
		'i',
	),
	/^[-=*_|\s]{2,80}(?:ursprüngliche nachricht|originalnachricht|message d'origine|mensaje original|messaggio originale|исходное сообщение|元のメール|原始邮件|原邮件)/i,
];

/** Words before the original recipient, if the mail was redirected to the address that failed. */
export const aliases =
	/(?:\((?:\w{1,20} ){0,2}(?:expanded|generated|forwarded|redirected|addressed|aliased|sent)(?: from| to| as| by)?:?|\boriginal (?:address|recipient)(?: is| was)?\s?[:=]?(?: rfc822;)?)\s{0,20}$/i;

/** Words before an address that did not fail. */
export const bystanders =
	/(?:\b(?:from|sender|by|contact|mailto|cc|via|reply[ -]?to|return[ -]?path|errors[ -]to|message[ -]id|reference[sd]?|in[ -]reply[ -]to|behalf of|subject|postmaster|help(?:desk)?|support|assistance|abuse|information|e-?mail us at|write to|resend (?:it )?to|forward (?:it |this |them |your message )?to|send (?:an? )?(?:e-?mail|mail|message|copy|it) to|unsubscribe|subscribe|(?:please )?(?:e-?mail(?:ing)?(?: to)?|send(?:ing)?|notify|inform|try|if)|absender|von|expéditeur|remitente|mittente|отправитель|от|送信者|发件人|寄件者)|"[^"]{0,60}")[\s:=]{0,20}$/i;

export const recipientLabels =
	/recipient|addresse?e?|user|mailbox|deliver|reach|fail|reject|unknown|invalid|error[ -]for|bounce|account|destinat|rcpt|(?:^|\s)(?:to|for)$|empf|adress|indirizzo|direcci|получател|адрес|宛先|受信|收件|地址/iu;

export const failing =
	/undeliver|unable|unknown|unreach|unrout|\bnot\b|n't\b|cannot|\bno (?:such|mailbox|account|user|recipient|valid|longer)|fail|invalid|incorrect|wrong|bad (?:address|recipient)|reject|refus|denied|bounce|returned|exceed|quota|\bfull\b|disabled|inactive|expired|suspend|abort|error|giv(?:e|en|ing) up|gave up|problem|trouble|too many (?:hops|errors)|over (?:the )?(?:limit|size)|\bpas\b|non remis|impossible|inconnu|rejet|échec|\bno (?:se|ha|pudo|existe|fue)|desconocid|nicht|unbekannt|fehl|\bnão|impossibil|\bnon (?:è|può|esiste|stat)|\bniet\b|\binte\b|\bikke\b|\bnie\b|не[ \u00a0]|недостав|ошибк|невозмож|でき|不明|エラー|存在しま|失敗|ません|无法|無法|失败|失敗|不存在|退回/i;

/** Sentences that tell the sender of a mail that this mail failed. */
export const statements: readonly RegExp[] = [
	/\b(?:your|the|this|following|original|an?)(?: \w{1,20}){0,2} (?:e-?mail|mail|message)s?\b(?:[^.!?]|\.\S){0,200}(?:not\b|n't\b|cannot|unable|undeliver|fail|reject|refus|return|bounce|abort)/i,
	/(?:unable to|not able to|could not|can ?not|couldn't|failed to) (?:deliver|send|forward|reach)|failed (?:recipients?|address(?:es)?)|deliver[a-z]{1,4} (?:(?:to|of)\b(?:[^.!?]|\.\S){0,120}|(?:has |was )?)(?:fail|abort|impossible)|(?:did|could) not (?:be )?(?:reach|deliver)/i,
	/votre (?:message|courriel|e-?mail|courrier)(?:[^.!?]|\.\S){0,120}pas|su (?:mensaje|correo)(?:[^.!?]|\.\S){0,120}no |ihre? (?:nachricht|e-?mail|mail)(?:[^.!?]|\.\S){0,120}nicht|il (?:suo|tuo) messaggio(?:[^.!?]|\.\S){0,120}non|sua mensagem(?:[^.!?]|\.\S){0,120}não|uw bericht(?:[^.!?]|\.\S){0,120}niet|ваше (?:письмо|сообщение)(?:[^.!?]|\.\S){0,120}не|(?:メール|メッセージ)[^。]{0,120}(?:でき|ません|失敗)|邮件[^。]{0,60}(?:无法|失败|退)/i,
];

export const deliveries =
	/success(?:fully|ful)? (?:delivered|relayed|delivery|relay)|\((?:success|relay(?:ed)?|delivered)\)|(?:was|has been|were) (?:delivered|relayed) to/i;

export const otherGoods =
	/\b(?:parcels?|packages?|shipments?|courier|orders?|invoices?|payments?|subscriptions?|paket|sendung|bestellung|rechnung|colis|commande|facture|paquete|pedido|factura|pacco|ordine)\b/i;

/** Words that people write. Some mail systems use them too, but `systemNames` recognizes these systems first. */
export const personal =
	/(?:^|[\s,;(])(?:i|i'm|i've|my|me|thanks|thank you|regards|cheers|hi|hello|dear|greetings|sincerely|best wishes|bonjour|cordialement|hallo|grüße|gruß|hola|saludos)(?=$|[\s,.;!?)])/i;
