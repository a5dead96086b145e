/** Portuguese is Brazilian where the variants differ. */

/** The first is the default. */
export const languages = ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'pl', 'sv', 'ja'] as const;

export type Language = (typeof languages)[number];

const en = {
	unsubscribe: 'Unsubscribe',
	question: (address: string, sender: string) => `Stop sending newsletters from ${sender} to ${address}?`,
	choice: 'Unsubscribe from',
	ofList: (list: string) => `This list: “${list}”`,
	ofAll: (sender: string) => `All mail from ${sender}`,
	unchanged: 'Nothing changes until you press the button.',
	unsubscribed: 'You are unsubscribed',
	doneOfList: (address: string, list: string) =>
		`${address} will get no more mail from the list “${list}”. Other lists are not affected.`,
	doneOfAll: (address: string, sender: string) => `${address} will get no more newsletters from ${sender}.`,
	underWay: 'Messages that were already sent may still arrive.',
	broken: 'This link does not work',
	brokenWhy: 'It may be incomplete or too old.',
	brokenAdvice: 'Open it again from the message, or contact the sender.',
	failed: 'This did not work',
	failedWhy: 'Something is wrong on our side. Please try again in a minute.',
	notUnsubscribed:
		'You are not unsubscribed yet: something is wrong on our side. Please try again in a minute.',
	tryAgain: 'Try again',
	noSubject: '(no subject)',
};

export const texts: Readonly<Record<Language, typeof en>> = {
	en,
	de: {
		unsubscribe: 'Abmelden',
		question: (address, sender) =>
			`Möchten Sie unter ${address} keine Newsletter von ${sender} mehr erhalten?`,
		choice: 'Was möchten Sie abbestellen?',
		ofList: (list) => `Diese Liste: „${list}“`,
		ofAll: (sender) => `Alle E-Mails von ${sender}`,
		unchanged: 'Es ändert sich nichts, bis Sie auf die Schaltfläche klicken.',
		unsubscribed: 'Sie sind abgemeldet',
		doneOfList: (address, list) =>
			`${address} erhält keine E-Mails der Liste „${list}“ mehr. Andere Listen sind davon nicht betroffen.`,
		doneOfAll: (address, sender) => `${address} erhält keine Newsletter von ${sender} mehr.`,
		underWay: 'Bereits versandte E-Mails können noch ankommen.',
		broken: 'Dieser Link funktioniert nicht',
		brokenWhy: 'Er ist möglicherweise unvollständig oder zu alt und hier nicht mehr hinterlegt.',
		brokenAdvice: 'Bitte öffnen Sie ihn noch einmal aus der E-Mail, oder schreiben Sie dem Absender.',
		failed: 'Das hat nicht geklappt',
		failedWhy: 'Bei uns ist ein Fehler aufgetreten. Bitte versuchen Sie es in einer Minute noch einmal.',
		notUnsubscribed:
			'Sie sind noch nicht abgemeldet: Bei uns ist ein Fehler aufgetreten. Bitte versuchen Sie es in einer Minute noch einmal.',
		tryAgain: 'Noch einmal versuchen',
		noSubject: '(kein Betreff)',
	},
	// French has a no-break space before ? and :, and inside « ».
	fr: {
		unsubscribe: 'Se désabonner',
		question: (address, sender) =>
			`Souhaitez-vous ne plus recevoir les newsletters de ${sender} à l’adresse ${address}\u202f?`,
		choice: 'Que souhaitez-vous ne plus recevoir\u202f?',
		ofList: (list) => `Cette liste\u00a0: «\u00a0${list}\u00a0»`,
		ofAll: (sender) => `Tous les e-mails de ${sender}`,
		unchanged: 'Rien ne change tant que vous n’avez pas appuyé sur le bouton.',
		unsubscribed: 'Votre désabonnement est enregistré',
		doneOfList: (address, list) =>
			`${address} ne recevra plus d’e-mails de la liste «\u00a0${list}\u00a0». Les autres listes ne sont pas concernées.`,
		doneOfAll: (address, sender) => `${address} ne recevra plus de newsletters de ${sender}.`,
		underWay: 'Des e-mails déjà envoyés peuvent encore vous parvenir.',
		broken: 'Ce lien ne fonctionne pas',
		brokenWhy: 'Il est peut-être incomplet, ou trop ancien pour être encore conservé ici.',
		brokenAdvice: 'Veuillez l’ouvrir à nouveau depuis l’e-mail, ou écrire à son expéditeur.',
		failed: 'Une erreur est survenue',
		failedWhy: 'Le problème vient de notre côté. Veuillez réessayer dans une minute.',
		notUnsubscribed:
			'Votre désabonnement n’est pas encore enregistré\u00a0: le problème vient de notre côté. Veuillez réessayer dans une minute.',
		tryAgain: 'Réessayer',
		noSubject: '(sans objet)',
	},
	es: {
		unsubscribe: 'Darse de baja',
		question: (address, sender) => `¿Desea dejar de recibir los boletines de ${sender} en ${address}?`,
		choice: '¿Qué desea dejar de recibir?',
		ofList: (list) => `Esta lista: «${list}»`,
		ofAll: (sender) => `Todos los correos de ${sender}`,
		unchanged: 'Nada cambia hasta que pulse el botón.',
		unsubscribed: 'Su baja está confirmada',
		doneOfList: (address, list) =>
			`${address} no recibirá más correos de la lista «${list}». Las demás listas no cambian.`,
		doneOfAll: (address, sender) => `${address} no recibirá más boletines de ${sender}.`,
		underWay: 'Es posible que aún lleguen correos que ya se habían enviado.',
		broken: 'Este enlace no funciona',
		brokenWhy: 'Puede que esté incompleto, o que sea demasiado antiguo y ya no se conserve aquí.',
		brokenAdvice: 'Ábralo de nuevo desde el correo, o escriba a su remitente.',
		failed: 'Algo ha fallado',
		failedWhy: 'El problema es nuestro. Inténtelo de nuevo dentro de un minuto, por favor.',
		notUnsubscribed:
			'Su baja aún no se ha registrado: el problema es nuestro. Inténtelo de nuevo dentro de un minuto, por favor.',
		tryAgain: 'Intentar de nuevo',
		noSubject: '(sin asunto)',
	},
	it: {
		unsubscribe: 'Annulla l’iscrizione',
		question: (address, sender) =>
			`Desidera non ricevere più le newsletter di ${sender} all’indirizzo ${address}?`,
		choice: 'Che cosa desidera non ricevere più?',
		ofList: (list) => `Questa lista: «${list}»`,
		ofAll: (sender) => `Tutte le e-mail di ${sender}`,
		unchanged: 'Non cambia nulla finché non preme il pulsante.',
		unsubscribed: 'Iscrizione annullata',
		doneOfList: (address, list) =>
			`${address} non riceverà più e-mail della lista «${list}». Le altre liste restano invariate.`,
		doneOfAll: (address, sender) => `${address} non riceverà più newsletter di ${sender}.`,
		underWay: 'Potrebbero ancora arrivare e-mail già inviate.',
		broken: 'Questo link non funziona',
		brokenWhy: 'Potrebbe essere incompleto, oppure troppo vecchio per essere ancora conservato qui.',
		brokenAdvice: 'Lo apra di nuovo dall’e-mail, oppure scriva al mittente.',
		failed: 'Qualcosa non ha funzionato',
		failedWhy: 'Il problema è nostro. La preghiamo di riprovare tra un minuto.',
		notUnsubscribed:
			'La Sua iscrizione non è ancora annullata: il problema è nostro. La preghiamo di riprovare tra un minuto.',
		tryAgain: 'Riprova',
		noSubject: '(nessun oggetto)',
	},
	pt: {
		unsubscribe: 'Cancelar inscrição',
		question: (address, sender) => `Deseja deixar de receber as newsletters de ${sender} em ${address}?`,
		choice: 'O que deseja deixar de receber?',
		ofList: (list) => `Esta lista: “${list}”`,
		ofAll: (sender) => `Todos os e-mails de ${sender}`,
		unchanged: 'Nada muda enquanto o botão não for pressionado.',
		unsubscribed: 'Inscrição cancelada',
		doneOfList: (address, list) =>
			`${address} não receberá mais e-mails da lista “${list}”. Nada muda nas outras listas.`,
		doneOfAll: (address, sender) => `${address} não receberá mais newsletters de ${sender}.`,
		underWay: 'E-mails já enviados ainda podem chegar.',
		broken: 'Este link não funciona',
		brokenWhy: 'Pode estar incompleto, ou ser antigo demais e já não estar guardado aqui.',
		brokenAdvice: 'Por favor, abra-o novamente a partir do e-mail, ou escreva ao remetente.',
		failed: 'Algo não funcionou',
		failedWhy: 'O problema é nosso. Por favor, tente novamente daqui a um minuto.',
		notUnsubscribed:
			'A sua inscrição ainda não foi cancelada: o problema é nosso. Por favor, tente novamente daqui a um minuto.',
		tryAgain: 'Tentar novamente',
		noSubject: '(sem assunto)',
	},
	nl: {
		unsubscribe: 'Afmelden',
		question: (address, sender) => `Wilt u geen nieuwsbrieven van ${sender} meer ontvangen op ${address}?`,
		choice: 'Waarvoor wilt u zich afmelden?',
		ofList: (list) => `Deze lijst: ‘${list}’`,
		ofAll: (sender) => `Alle e-mail van ${sender}`,
		unchanged: 'Er verandert niets totdat u op de knop drukt.',
		unsubscribed: 'U bent afgemeld',
		doneOfList: (address, list) =>
			`${address} ontvangt geen e-mail meer van de lijst ‘${list}’. Andere lijsten blijven ongewijzigd.`,
		doneOfAll: (address, sender) => `${address} ontvangt geen nieuwsbrieven meer van ${sender}.`,
		underWay: 'E-mails die al verzonden zijn, kunnen nog aankomen.',
		broken: 'Deze link werkt niet',
		brokenWhy: 'Hij is misschien onvolledig, of zo oud dat hij hier niet meer wordt bewaard.',
		brokenAdvice: 'Open hem nog eens vanuit de e-mail, of schrijf naar de afzender.',
		failed: 'Dat is niet gelukt',
		failedWhy: 'Er is iets misgegaan aan onze kant. Probeer het over een minuut nog eens.',
		notUnsubscribed:
			'U bent nog niet afgemeld: er is iets misgegaan aan onze kant. Probeer het over een minuut nog eens.',
		tryAgain: 'Opnieuw proberen',
		noSubject: '(geen onderwerp)',
	},
	// "Nadawca" (sender) and "lista" (list) precede the names, so that the names need no case endings.
	pl: {
		unsubscribe: 'Zrezygnuj z subskrypcji',
		question: (address, sender) =>
			`Czy chcą Państwo zrezygnować z newsletterów nadawcy ${sender} wysyłanych na adres ${address}?`,
		choice: 'Z czego chcą Państwo zrezygnować?',
		ofList: (list) => `Z tej listy: „${list}”`,
		ofAll: (sender) => `Ze wszystkich wiadomości nadawcy ${sender}`,
		unchanged: 'Bez naciśnięcia przycisku nic się nie zmieni.',
		unsubscribed: 'Rezygnacja została przyjęta',
		doneOfList: (address, list) =>
			`Na adres ${address} nie będą już wysyłane wiadomości z listy „${list}”. Inne listy pozostają bez zmian.`,
		doneOfAll: (address, sender) =>
			`Na adres ${address} nie będą już wysyłane newslettery nadawcy ${sender}.`,
		underWay: 'Wiadomości, które zostały już wysłane, mogą jeszcze nadejść.',
		broken: 'Ten link nie działa',
		brokenWhy: 'Może być niekompletny albo zbyt stary, by był tu jeszcze przechowywany.',
		brokenAdvice: 'Proszę otworzyć go jeszcze raz z wiadomości albo napisać do jej nadawcy.',
		failed: 'Nie udało się',
		failedWhy: 'Wystąpił błąd po naszej stronie. Proszę spróbować ponownie za minutę.',
		notUnsubscribed:
			'Rezygnacja nie została jeszcze przyjęta: wystąpił błąd po naszej stronie. Proszę spróbować ponownie za minutę.',
		tryAgain: 'Spróbuj ponownie',
		noSubject: '(bez tematu)',
	},
	sv: {
		unsubscribe: 'Avsluta prenumerationen',
		question: (address, sender) => `Vill du inte längre få nyhetsbrev från ${sender} till ${address}?`,
		choice: 'Vad vill du sluta få?',
		ofList: (list) => `Den här listan: ”${list}”`,
		ofAll: (sender) => `All e-post från ${sender}`,
		unchanged: 'Inget ändras förrän du trycker på knappen.',
		unsubscribed: 'Prenumerationen är avslutad',
		doneOfList: (address, list) =>
			`${address} får ingen mer e-post från listan ”${list}”. Andra listor påverkas inte.`,
		doneOfAll: (address, sender) => `${address} får inga fler nyhetsbrev från ${sender}.`,
		underWay: 'E-post som redan har skickats kan fortfarande komma fram.',
		broken: 'Länken fungerar inte',
		brokenWhy: 'Den kan vara ofullständig, eller så gammal att den inte längre finns kvar här.',
		brokenAdvice: 'Öppna den en gång till från mejlet, eller skriv till avsändaren.',
		failed: 'Det gick inte',
		failedWhy: 'Något är fel hos oss. Försök igen om en minut.',
		notUnsubscribed: 'Prenumerationen är inte avslutad än: något är fel hos oss. Försök igen om en minut.',
		tryAgain: 'Försök igen',
		noSubject: '(inget ämne)',
	},
	ja: {
		unsubscribe: '配信を停止する',
		question: (address, sender) => `${sender} から ${address} へのメールマガジンの配信を停止しますか？`,
		choice: '停止する配信をお選びください',
		ofList: (list) => `このリスト：「${list}」`,
		ofAll: (sender) => `${sender} からのすべてのメール`,
		unchanged: 'ボタンを押すまでは、何も変更されません。',
		unsubscribed: '配信を停止しました',
		doneOfList: (address, list) =>
			`${address} には、リスト「${list}」のメールを今後お送りしません。ほかのリストの配信は継続されます。`,
		doneOfAll: (address, sender) => `${address} には、${sender} からのメールマガジンを今後お送りしません。`,
		underWay: 'すでに送信されたメールが届く場合があります。',
		broken: 'このリンクは無効です',
		brokenWhy: 'リンクが途中で切れているか、保存期間を過ぎている可能性があります。',
		brokenAdvice: 'メールからもう一度開くか、送信者にお問い合わせください。',
		failed: 'エラーが発生しました',
		failedWhy: 'こちらで問題が発生しました。1分ほど待ってから、もう一度お試しください。',
		notUnsubscribed:
			'配信はまだ停止されていません。こちらで問題が発生しました。1分ほど待ってから、もう一度お試しください。',
		tryAgain: 'もう一度試す',
		noSubject: '（件名なし）',
	},
};
