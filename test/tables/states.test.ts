import { expect, it } from 'vitest';
import { type State, stateColumn, stateOf, stateOfRow, tellsState } from '../../src/tables/states.js';

const lines = (text: string) => text.split('\n').map((line) => line.trim());

/** `cells` has the cell of each row, even if it is empty. */
function tells(column: string, cells: readonly string[], isWhole = true): boolean {
	const filled = cells.filter((cell) => cell !== '');
	return tellsState(column, 0, { cells: [filled], rows: cells.length, isWhole });
}

/** Names in exports of other programs, and in nine languages: German to Japanese. */
const namesOfStates = `Status, status, UNSUB_TIME, UNSUB_REASON, CLEAN_TIME, CLEAN_CAMPAIGN_ID, Opted Out, Email Opt Out, HasOptedOutOfEmail
	Email Blacklisted, Blocklisted, EMAIL_BLACKLISTED, OPT_IN, DOUBLE_OPT-IN, Unsubscribed, unsubscribed_at, meta.bounced, bounce_count
	Complaint, Marked as spam, doNotContact, donotemail, DNC, Do not mail, IsExcludedFromCampaigns, Suppressed, IsOptInPending, inactive
	Unsubscribed from all email, Email Marketing Consent, Accepts Marketing, subscribed_to_emails, deactivated, email_disabled, deleted_at
	Confirmed, Email verified, Consent, Permission, Subscriber Status, global_status
	Robinson, Robinsonliste, Kündigungsdatum, Gekündigt am, Quit, quit_date, Account deleted, Contact blocked, invalid
	Abgemeldet, Abgemeldet am, Abmeldedatum, Gesperrt, Werbesperre, Widerruf, Einwilligung, Bestätigt, Unzustellbar
	Désabonné, Date de désinscription, Statut, Liste noire, Plainte, Consentement, Inscrit, Rebonds
	Dado de baja, Fecha de baja, Baja, Cancelado, Rebotado, Bloqueado, Suscrito, Consentimiento, Estatus
	Disiscritto, Data disiscrizione, Cancellato, Bloccato, Iscritto, Consenso, Rimbalzato
	Descadastrado, Cancelado em, Bloqueado, Inscrito, Consentimento, Devolvido, Denúncia
	Uitgeschreven, Uitschrijfdatum, Afgemeld, Zwarte lijst, Geblokkeerd, Aangemeld, Toestemming, Klacht
	Wypisany, Data wypisania, Rezygnacja, Zablokowany, Zgoda, Zapisany, Odbite, Skarga
	Avregistrerad, Avprenumererad, Spärrad, Blockerad, Samtycke, Prenumererar, Studsade, Klagomål
	配信停止, 配信停止日, 退会日, 解除, ステータス, 同意, 購読, ブロック, バウンス, 苦情`;

it.each(
	lines(namesOfStates).map((line) => [line]),
)('a column name that says who may get mail is recognized, whatever the cells are: %s', (line) => {
	for (const name of line.split(', '))
		for (const cells of [[], [''], ['', 'NORMAL'], ['2024-05-01 10:00:00', ''], ['1', '0']])
			expect([name, cells, tells(name, cells)]).toEqual([name, cells, true]);
});

it('a column that says who may get mail is recognized by its name and cells, and similar columns are not', () => {
	const by = `state=active|cancelled; Estado=activo|baja; Stato=iscritto|disiscritto; Stan=aktywny|wypisany; 状態=有効|退会
		Newsletter=ja|nein; Newsletter=oui|; Marketing=1|0; Aktiv=ja|nein; active_subscription=true|false; =x|hard bounce
		Enabled=1|0; Mailable=No|Yes; Email allowed=No|; On Hold=1|; Date Held=|2024-05-01; Churned=1|; Segment=customer|unsubscribed|lead; Kind=subscribed|subscribed; Typ=abgemeldet; 種別=配信停止|購読中; column_7=enabled|blocklisted
		Newsletter=aus; DOI=nein; Darf angeschrieben werden=nein|ja; May be contacted=no; Valid=0; Gültig=nein|; Subscriber?=No; GDPR=withdrawn; DSGVO=ja; type=churned|customer
		Notes=|unsubscribed 2020; Tags=unsubscribed, vip|vip; Info=vip, opted out|; Memo=Unsubscribed from the paper in 2019|; Cancelled orders=unsubscribed`;
	const not = `State=CA|NY|ON|NO|SI; Order Status=shipped|returned; Marital Status=married|; Estado=Jalisco|São Paulo; Newsletter=weekly|monthly; Mailing address=Main Street 1|; City=Oslo|
		Unsubscribe link=https://example.com/u/1|; Subscribed at=2024-05-01|2024-05-02 10:00; OPTIN_TIME=2024-05-01 10:00:00|01.05.2024
		CONFIRM_IP=192.0.2.1|2001:db8::1; Subscriber ID=1|2; MEMBER_RATING=2|3; Trabajador=si|no; Option=1|0; Interactive=yes|no
		Note=she unsubscribed from the paper|; Deleted messages=3|0; Cancelled orders=|1; Bounce rate=0.02|; Blocked calendar=yes|no; Churn risk=0.3|; Pending orders=; Spam score=1.2|
		DOI=10.1000/182|; Valid until=2027-01-01|; Tags=vip, bounce house|; Canton=no|; Order=pending|cancelled|shipped; Land & City=x|y; Date d’inscription=2024-05-01|`;
	for (const [text, expected] of [
		[by, true],
		[not, false],
	] as const)
		for (const pair of text.split(/[;\n]/)) {
			const [name = '', cells = ''] = pair.split('=').map((part) => part.trim());
			expect([pair, tells(name, cells.split('|'))]).toEqual([pair, expected]);
		}
	// A column of subscription times may be a state if some rows lack one, or if unread rows may lack one.
	expect(tells('OPTIN_TIME', ['2024-05-01', ''])).toBe(true);
	expect(tells('OPTIN_TIME', ['2024-05-01', '2024-05-02'], false)).toBe(true);
});

it('a word in a cell means a state, and the column name decides what yes, no or a date means', () => {
	const words = `active: Active, SUBSCRIBED, opt-in, angemeldet, abonné, Abonnée, suscrito, iscritta, ativo, ingeschreven, zapisany, prenumererar, 購読中
		unsubscribed: unsubscribed, Opted-out, opt out, Abgemeldet, désabonné, desabonne, Désinscrite, dado de baja, disiscritto, 退会
		unsubscribed: descadastrado, uitgeschreven, afgemeld, wypisana, avregistrerad, 配信停止
		bounced: Bounced, hard bounce, hard-bounced, cleaned, unzustellbar, rebotado, rimbalzato, devolvido, odbity, 不達
		complained: complained, Spam, marked as spam, abuse, Beschwerde, plainte, queja, klacht, skarga, klagomål, 苦情
		unconfirmed: unconfirmed, pending, unbestätigt, non confirmé, sin confirmar, não confirmado, niepotwierdzony, 未確認
		unsubscribed: unsubscribed 2020, Opted out (12.5.2021), unsubscribed by mail of a friend
		unknown: enabled, blocklisted, active 2020, 1, yes, 2024-05-01`;
	for (const line of lines(words)) {
		const [state, all = ''] = line.split(': ');
		for (const word of all.split(', '))
			expect([word, stateOf(word, stateColumn('Status', 0, {}))]).toEqual([word, state]);
	}
	const cells = `Opted Out=1=unsubscribed; Opted Out=0=active; Abgemeldet=ja=unsubscribed; Abgemeldet=Nein=active; Opted Out==null; Tags=vip| unsubscribed| spam complaint=complained; Account deleted=1=unsubscribed; Valid=0=unknown
		UNSUB_TIME=2024-05-01 10:00:00=unsubscribed; unsubscribed_at=1714550400=unsubscribed; unsubscribed_at=NULL=active
		unsubscribed_at=0000-00-00 00:00:00=active; Unsubscribed=subscribed=active; Bounced=yes=bounced; Marked as spam=x=complained
		IsOptInPending=true=unconfirmed; Consent=oui=active; Consent=non=unsubscribed; Consent==unknown; Confirmed=no=unconfirmed
		Confirmed at=2024-05-01=active; Status==null; Whatever=yes=unknown`;
	for (const text of cells.split(/[;\n]/)) {
		const [column = '', cell = '', state] = text.split('=').map((part) => part.trim());
		expect([text, String(stateOf(cell, stateColumn(column, 0, {})))]).toEqual([text, state]);
	}
});

it('--state-words override the built-in words, and a row gets the strongest state of its columns', () => {
	const read = (column: string, cell: string, words: Record<string, State>) =>
		stateOf(cell, stateColumn(column, 0, words));
	expect(read('Status', ' Block-Listed', { blocklisted: 'bounced' })).toBe('bounced');
	expect(read('Status', 'Active', { active: 'unsubscribed' })).toBe('unsubscribed');
	expect(read('Consent', '', { '': 'unconfirmed' })).toBe('unconfirmed');
	const columns = ['Status', 'Bounced', 'Spam'].map((column, index) => stateColumn(column, index, {}));
	const rows = ['active,0,', 'unsubscribed,1,0', ',1,1', ',,', 'active,7,'];
	expect(rows.map((row) => stateOfRow(row.split(','), columns))).toEqual([
		...['active', 'bounced', 'complained', null, 'unknown'],
	]);
});
