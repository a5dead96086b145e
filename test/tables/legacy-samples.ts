/** Names, towns and sentences of fictitious people, and the code pages that each language uses. */

export interface Sample {
	language: string;
	encodings: readonly string[];
	header: string;
	names: readonly string[];
	cities: readonly string[];
	sentences: readonly string[];
}

const parted = (text: string) => text.split(' | ');

export const samples: readonly Sample[] = [
	{
		language: 'Polish',
		encodings: ['windows-1250', 'iso-8859-2', 'cp852'],
		header: 'email;imię;miejscowość;uwagi',
		names: parted(
			'Władysław Mączyński | Róża Gołębiewska | Kacper Żak | Świętosława Bąk | Rafał Sędziwój | Joanna Łuczak | Tadeusz Krzyżanowski | Elżbieta Półtorak',
		),
		cities: parted('Zakopane | Świnoujście | Kielce | Łomża | Przemyśl | Opole | Jędrzejów | Elbląg'),
		sentences: parted(
			'Klient dzwonił w sprawie płatności | bez uwag | Wysłać katalog na wiosnę | Nie chce otrzymywać listów',
		),
	},
	{
		language: 'Czech',
		encodings: ['windows-1250', 'iso-8859-2', 'cp852'],
		header: 'email;křestní jméno;obec;poznámka',
		names: parted(
			'Bořivoj Šťastný | Lenka Hřebíčková | Přemysl Žďárský | Květa Pešková | Radek Mařík | Šárka Ježková | Oldřich Zámečník | Anežka Krejčí',
		),
		cities: parted('Třebíč | Kladno | Znojmo | Žatec | Přerov | Jindřichův Hradec | Most | Uherské Hradiště'),
		sentences: parted(
			'Zákazník si přeje doručení v úterý | bez poznámky | Zaplaceno předem | Telefonovat až po poledni',
		),
	},
	{
		language: 'Hungarian',
		encodings: ['windows-1250', 'iso-8859-2', 'cp852'],
		header: 'email;teljes név;település;megjegyzés',
		names: parted(
			'Csűry Örs | Fülöp Dezső | Jenő Vörös | Hűvösné Szőke Anikó | Bartók Előd | Ügyes Gyöngyi | Kertész Sándor | Mező Tímea',
		),
		cities: parted('Hajdúszoboszló | Érd | Kőbánya | Szűrte | Eger | Gödöllő | Mezőkövesd | Baja'),
		sentences: parted(
			'A megrendelő később fizet | nincs megjegyzés | Küldjék el a következő számlát | Ne hívják többet',
		),
	},
	{
		language: 'Russian',
		encodings: ['windows-1251', 'koi8-r', 'cp866'],
		header: 'email;полное имя;населённый пункт;примечание',
		names: parted(
			'Игорь Щербаков | Людмила Жукова | Тимофей Ёжиков | Ксения Цветкова | Борис Эйхе | Вера Юдина | Глеб Хомяков | Зоя Панфилова',
		),
		cities: parted('Тюмень | Псков | Йошкар-Ола | Воронеж | Элиста | Кызыл | Липецк | Ярославль'),
		sentences: parted(
			'Просил перезвонить в среду | без примечаний | Оплата при получении | Больше не присылать писем',
		),
	},
	{
		language: 'Greek',
		encodings: ['windows-1253', 'iso-8859-7'],
		header: 'email;ονοματεπώνυμο;περιοχή;σημείωση',
		names: parted(
			'Σπύρος Καραγιάννης | Αικατερίνη Ξενάκη | Θανάσης Ψαρρός | Φωτεινή Λαμπράκη | Χρήστος Ζαχαρίου | Βασιλική Ρήγα | Ευάγγελος Τσίπας | Όλγα Μπέη',
		),
		cities: parted('Καβάλα | Ρόδος | Τρίκαλα | Ξάνθη | Κόρινθος | Χίος | Βέροια | Σπάρτη'),
		sentences: parted(
			'Να σταλεί ο νέος κατάλογος | χωρίς σημείωση | Πλήρωσε με κάρτα | Δεν θέλει άλλα μηνύματα',
		),
	},
	{
		language: 'Turkish',
		encodings: ['windows-1254'],
		header: 'email;ad soyad;ilçe;açıklama',
		names: parted(
			'Tuğrul Aydınlı | Çiğdem Koçoğlu | Şeyma Taşkın | Oğuzhan Ünlü | Gizem Işık | Ömer Kırmızı | Buğra Şimşek | Nazlı Akgün',
		),
		cities: parted('Eyüp | Bağcılar | Çankaya | Nilüfer | Alanya | Gaziosmanpaşa | Karşıyaka | Tarsus'),
		sentences: parted(
			'Müşteri yarın aranacak | açıklama yok | Kapıda ödeme yapacağını söyledi | Artık ileti istemiyor',
		),
	},
	{
		language: 'French',
		encodings: ['windows-1252', 'macintosh', 'cp850'],
		header: 'email;prénom et nom;commune;remarque',
		names: parted(
			'Thérèse Ménard | Gaëtan Lévêque | Joël Français | Solène Crépin | Honoré Forêt | Aimé Desprès | Irène Goût | Pierre Dumas',
		),
		cities: parted('Angoulême | Béziers | Lille | Évreux | Mâcon | Alès | Châlons | Paris'),
		sentences: parted(
			'Le client a déjà réglé sa facture | aucune remarque | À rappeler après la fête | Ne souhaite plus être contacté',
		),
	},
	{
		language: 'German',
		encodings: ['windows-1252', 'macintosh', 'cp850'],
		header: 'email;Name;Ort;Bemerkung über',
		names: parted(
			'Jörn Gräf | Sönke Fröhlich | Bärbel Süß | Rüdiger Weißenborn | Käte Böttcher | Lothar Kühn | Ägidius Moll | Ute Strauß',
		),
		cities: parted('Würzburg | Göttingen | Bonn | Fürth | Osnabrück | Plön | Tübingen | Kiel'),
		sentences: parted('Möchte künftig keine Anrufe | keine | Zahlt per Überweisung | Rückruf nächste Woche'),
	},
	{
		language: 'Spanish',
		encodings: ['windows-1252', 'macintosh', 'cp850'],
		header: 'email;nombre;población;observación',
		names: parted(
			'Nicolás Ibáñez | Rocío Acuña | Ramón Velázquez | Mónica Briceño | Joaquín Ordóñez | Lucía Peláez | Iñaki Zúñiga | Pilar Cano',
		),
		cities: parted('Ávila | Jaén | Cáceres | Almería | Badalona | Gijón | Mérida | A Coruña'),
		sentences: parted(
			'El cliente pagará después | sin observación | Llamará el miércoles | No quiere más envíos',
		),
	},
	{
		language: 'Portuguese and Nordic',
		encodings: ['windows-1252', 'macintosh', 'cp850'],
		header: 'email;nome;município;observação',
		names: parted(
			'Sebastião Brandão | Márcia Leça | Åsmund Bråten | Søs Kjær | Göte Åberg | Jônatas Gusmão | Mæhle Grønn | Pirjo Särkkä',
		),
		cities: parted('Maranhão | Åre | Næstved | Umeå | Ribeirão Preto | Førde | Hyvinkää | Braga'),
		sentences: parted('O cliente já não mora lá | nenhuma | Betaler på fredag | Ringer igen i næste uge'),
	},
	{
		language: 'Simplified Chinese',
		encodings: ['gb18030', 'gbk'],
		header: 'email,名字,所在地,说明',
		names: parted('欧阳倩 | 诸葛鸿 | 申屠雁 | 章子墨 | 殷若男 | 裴思远 | 关小月 | 骆冰'),
		cities: parted('绍兴 | 烟台 | 洛阳 | 桂林 | 呼和浩特 | 泉州 | 遵义 | 拉萨'),
		sentences: parted('客户希望下周送货 | 无 | 已经付款，请开发票 | 不再接收邮件'),
	},
	{
		language: 'Traditional Chinese',
		encodings: ['big5'],
		header: 'email,名字,所在地,說明',
		names: parted('歐陽倩 | 諸葛鴻 | 莊佩珊 | 章子墨 | 殷若男 | 裴思遠 | 關小月 | 駱冰'),
		cities: parted('基隆 | 臺東 | 澎湖 | 板橋 | 淡水 | 金門 | 鹿港 | 苗栗'),
		sentences: parted('客戶希望下週送貨 | 無 | 已經付款，請開發票 | 不再接收郵件'),
	},
	{
		language: 'Japanese',
		encodings: ['shift_jis', 'euc-jp'],
		header: 'email,お名前,お住まい,メモ',
		names: parted(
			'黒木 沙耶 | 大川 誠 | 岩崎 ひかる | 三宅 修平 | マツダ レイ | 平山 すみれ | 戸田 光 | 成瀬 圭',
		),
		cities: parted('奈良 | 那覇 | 熊本 | 函館 | 金沢 | さいたま市 | 松山 | 岐阜'),
		sentences: parted(
			'来週の配達を希望しています | なし | お支払いは済みました | メールは送らないでください',
		),
	},
	{
		language: 'Korean',
		encodings: ['euc-kr'],
		header: 'email,고객명,거주지,메모',
		names: parted('황보라 | 남궁민 | 선우진 | 배두리 | 탁재웅 | 방은희 | 표창수 | 금나래'),
		cities: parted('춘천 | 목포 | 여수 | 강릉 | 순천 | 김해 | 속초 | 익산'),
		sentences: parted('다음 주에 배송을 원합니다 | 없음 | 결제를 마쳤습니다 | 메일을 받지 않겠습니다'),
	},
];

/**
 * Creates a table with `rows` rows. One row in `share` has non-ASCII text; all others are ASCII.
 */
export function tableOf({ header, names, cities, sentences }: Sample, rows: number, share = 1): string {
	const delimiter = header.includes(';') ? ';' : ',';
	const lines = [share === 1 ? header : ['email', 'name', 'city', 'note'].join(delimiter)];
	for (let row = 0; row < rows; row += 1) {
		const cells =
			row % share === share - 1 || share === 1
				? [names, cities, sentences].map(
						(list, at) => list[(row * (at + 1) + Math.floor(row / share)) % list.length] ?? '',
					)
				: ['John Smith', 'Springfield', 'called twice'];
		lines.push([`user.${row}@example.com`, ...cells].join(delimiter));
	}
	return `${lines.join('\r\n')}\r\n`;
}
