// Writes src/tables/letter-frequencies.ts: how often one letter follows another in the languages of old code pages. It
// counts the names of countries, languages, currencies, scripts and months in Unicode's CLDR. A Node with full ICU has
// the CLDR in Intl. It also counts the names of people and places below.
import { writeFileSync } from 'node:fs';

const names = {
	pl: 'Paweł Łukasz Michał Małgorzata Agnieszka Żaneta Zbigniew Wójcik Kowalczyk Wiśniewski Dąbrowska Zieliński Woźniak Jabłoński Grażyna Bożena Stanisław Jarosław Łódź Kraków Gdańsk Poznań Wrocław Częstochowa Białystok Toruń Rzeszów Bydgoszcz imię nazwisko miasto ulica zamówienie dziękuję proszę',
	cs: 'Jiří Tomáš Lukáš Ondřej Matěj Kateřina Tereza Veronika Novák Svoboda Dvořák Černý Procházka Kučera Veselý Němec Růžička Beneš Fiala Řehoř Zdeněk Vojtěch Brno Plzeň České Budějovice Ostrava Hradec Králové Ústí Olomouc Děčín jméno příjmení město děkuji prosím Příliš žluťoučký kůň',
	sk: 'Ján Jozef Štefan Ľubomír Zuzana Mária Kováč Horváth Tóth Baláž Šimko Žilina Košice Prešov Banská Bystrica Trenčín Nitra Piešťany ďakujem prosím meno priezvisko',
	hu: 'László József Gábor Zoltán Erzsébet Zsófia István Balázs Győző Kovács Szabó Tóth Nagy Varga Szűcs Erdős Kőszegi Lőrincz Győr Szeged Miskolc Pécs Székesfehérvár Kecskemét Nyíregyháza név város utca köszönjük kérjük vezetéknév keresztnév Ödön Gergő Ernő',
	ro: 'Ștefan Ştefan Ioniţă Ionuț Mihăilescu Popescu Brăila Bucureşti Iaşi Timişoara Constanţa Galaţi Piteşti mulţumesc oraş',
	hr: 'Željko Ivančić Horvat Kovačević Babić Marić Jurić Đorđe Šibenik Čakovec Varaždin Požega Matić hvala grad ime prezime',
	fr: 'François Hélène Zoé Chloé Jérôme Benoît Geneviève Aurélie Frédéric Stéphane Céline Léa Noël Raphaël Anaïs Lefèvre Béatrice Gérard René Andrée Hervé Besançon Orléans Nîmes Saint-Étienne prénom nom ville téléphone société été très français près forêt hôtel où ça Loïc Maëlle Château Sébastien Agnès Gaëlle',
	de: 'Jürgen Jörg Müller Schröder Schäfer Krüger Köhler Günther Björn Käthe Weiß Großmann Böhm Lübeck München Köln Düsseldorf Nürnberg Zürich Österreich Straße Vorname Nachname Grüße schön für über Änderung Bäcker Hänsel Götz Ulrike Voß',
	es: 'José María Jesús Ángel Martínez Rodríguez González Hernández López Pérez García Sánchez Núñez Muñoz Íñigo Peña Begoña Málaga Córdoba Cádiz Logroño Coruña León año teléfono dirección apellido señor mañana niño Inés Andrés Raúl Óscar Álvaro Sofía',
	pt: 'João Conceição Gonçalves Antônio Antónia Luís Inês José Magalhães Simões Guimarães São Paulo Brasília Goiânia Évora Coimbra Três Irmãos endereço não informação coração Araújo Fábio Cláudia Vitória Assunção Leitão Falcão',
	it: 'Nicolò Niccolò città Forlì Cefalù perché Rosà Mondovì virtù Cantù libertà Caffè Noè Tosò',
	sv: 'Åsa Björn Håkan Göran Märta Sjöström Lindström Bergström Åkesson Östlund Malmö Göteborg Linköping Västerås Örebro Växjö förnamn är på från och för många Ångström Älvsjö Jönköping Norrköping',
	da: 'Søren Jørgen Bjørn Mærsk Kærsgaard Østergaard Åge Ærø Aalborg København Tromsø Helsingør Sønderborg Møller Nørgaard Sørensen Jørgensen også må på får være øl',
	nb: 'Øyvind Håkon Bjørn Åse Pål Kåre Jørn Sørlie Ødegård Bjørnson Tromsø Bodø Ålesund Hønefoss Drøbak Gjøvik Lillestrøm Haugesund på også få være Brønnøysund',
	fi: 'Päivi Väinö Mäkinen Hämäläinen Jyväskylä Hämeenlinna Seinäjoki Järvinen Mäkelä Kärkkäinen Pyykkönen Töölö etunimi sukunimi hyvää päivää käyttäjä',
	is: 'Guðrún Sigurður Þórður Björk Jónsdóttir Ólafur Reykjavík Ísafjörður Þorsteinn',
	nl: 'Daniël Michaël Zoë België Renée coördinatie Curaçao financiële één André Noëlle Joëlle Raphaël',
	tr: 'Ayşe Gökhan Çağlar Özgür Şükrü İbrahim Işıl Yıldız Yılmaz Öztürk Şahin Çelik Doğan Kılıç Güneş Tuğba Gülşen Emre İzmir Eskişehir Kırşehir Muğla Şanlıurfa Beşiktaş Üsküdar Diyarbakır adı soyadı şehir teşekkürler için değil Ağrı Kadıköy Nuriye Bülent Barış',
	lt: 'Šarūnas Žydrūnas Jonė Šiauliai Panevėžys Klaipėda vardas pavardė ačiū Birutė Eglė',
	lv: 'Jānis Līga Kristīne Pēteris Bērziņš Kalniņš Ozoliņš Daugavpils Jūrmala Rēzekne',
	et: 'Jüri Tõnu Ülle Õnne Pärnu Põlva Võru Jõgeva Sõber Mägi Kõiv Tõnis',
	ru: 'Анна Мария Елена Ольга Наталья Татьяна Сергей Александр Дмитрий Алексей Иванов Петров Сидоров Кузнецова Смирнова Попов Васильев Соколова Михайлов Новиков Фёдоров Москва Санкт-Петербург Новосибирск Екатеринбург Казань Нижний Новгород Самара Челябинск Омск Ростов Уфа Красноярск имя фамилия город адрес телефон спасибо здравствуйте заказ улица дом квартира что как это для или вы мы не',
	uk: 'Олександр Наталія Юрій Сергій Оксана Ірина Шевченко Коваленко Бондаренко Ткаченко Київ Харків Львів Одеса Дніпро Запоріжжя прізвище місто вулиця дякую',
	bg: 'Георги Димитър Иван Мария Петрова Иванова Николай Стоянов София Пловдив Варна Бургас Русе Стара Загора град име фамилия благодаря',
	el: 'Γιώργος Δημήτρης Κωνσταντίνος Νίκος Μαρία Ελένη Κατερίνα Παπαδόπουλος Παπαδοπούλου Γεωργίου Νικολάου Αντωνίου Αθήνα Θεσσαλονίκη Πάτρα Ηράκλειο Λάρισα Βόλος Ιωάννινα Χανιά όνομα επώνυμο πόλη διεύθυνση τηλέφωνο ευχαριστώ καλημέρα και για από του της την στο είναι',
	he: 'דוד משה יוסף שרה רחל לאה כהן לוי מזרחי פרץ ביטון ירושלים תל אביב חיפה באר שבע שם משפחה עיר תודה שלום',
	ar: 'محمد أحمد علي حسن حسين فاطمة عائشة مريم عبد الله القاهرة الرياض دبي بيروت بغداد دمشق الاسم المدينة شكرا مرحبا العنوان',
};
/** Characters of surnames, given names, places and plain words, added to those of CLDR. */
const characters = {
	zh: '王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段钱汤尹黎易常武乔贺赖龚文伟芳娜秀英敏静丽强磊军洋勇艳杰娟涛明超霞平刚桂玲红梅志建国华春燕玉兰小鹏飞辉鑫宇浩然子轩梓涵欣怡雨诗婷雪琳俊峰天海波斌凯健的一是不了在人有我他这个们中来上大为和地到以说时要就出会可也你对生能而那得着下自之年过发后作里用道行所家种事成多经去法学如都同现当没动面起看定分还进好部其些主样理心本前开但因只从想实日者意无力它与长把机十民第公此已工使情性知全三又关点正业外将两间由问很最重并物手应向头其月号先生女士您的感谢谢请订单姓名城市地址电话省市区路街道邮箱北京上海广州深圳天津重庆成都武汉杭州南京西安苏州青岛大连厦门济南郑州长沙哈尔滨沈阳福州昆明宁波合肥客户备注公司',
	'zh-Hant':
		'陳林黃張李王吳劉蔡楊許鄭謝郭洪邱曾廖賴徐周葉蘇莊呂江何蕭羅高潘簡朱鍾彭游詹胡施沈余盧梁趙顏柯孫魏翁戴范宋方鄧杜傅侯曹溫薛丁馬蔣唐卓藍馮姚石董紀歐程連古汪湯姜田康鄒白涂尤巫韓龔嚴袁鐘黎金阮陸倪夏童邵柳錢怡君雅婷家豪志明建宏俊傑美玲淑芬麗華惠宜佳穎冠宇承恩品睿子晴詠欣雨文國偉雄春秀英玉珍芳心的一是不了在人有我他這個們中來上大為和地到以說時要就出會可也你對生能而那得著下自之年過發後作裡用道行所家種事成多經去法學如都同現當沒動面起看定分還進好部其些主樣理本前開但因只從想實日者意無力它與長把機十民第公此已工使情性知全三又關點正業外將兩間由問很最重並物手應向頭姓名城市地址電話臺台北新竹中桃園南高雄基隆嘉義彰化屏東花蓮宜蘭香港九龍沙路街區縣號樓先生女士小姐您好感謝請訂單客戶備註公司',
	ja: '佐藤鈴木高橋田中伊渡辺山本村小林加吉斎松井上木清水崎森池橋石川前藤岡長谷後近坂遠青福西太原三浦中野金子和竹内大島岩平丸今河武上杉新増千葉野宮菊久保安東横工横谷荒尾柴酒宮市関口望月桜沢健翔子美愛花子恵裕一郎次真由香太直樹洋介陽菜結衣優奈翼隼人智久浩二京都阪神戸名古屋札幌仙台広島北海道県府区町丁目番地氏名姓様住所電話都市号年月日時人会社学生本語国株式有限御中備考注文確認',
	ko: '김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우구민진지은영수현희경미선서준연예원도윤시호재훈동민상우혜정숙자순옥철성호민지수아하은서울부산대구인천광주대전울산수원성남고양용인창원청주전주천안포항제주도시군구읍면동로길번이름성명주소전화번호회사고객메모주문안녕하세요감사합니다입니다은는이가을를에의와과한하고있습니다다',
};

const types = ['region', 'language', 'currency', 'script'];
const letters = 'abcdefghijklmnopqrstuvwxyz';

function* namesOf(language) {
	for (const type of types) {
		const display = new Intl.DisplayNames([language], { type, fallback: 'none' });
		for (const code of codesOf(type)) {
			try {
				const name = display.of(code);
				if (name !== undefined) yield name;
			} catch {}
		}
	}
	for (let month = 0; month < 12; month += 1)
		yield new Intl.DateTimeFormat(language, { dateStyle: 'full' }).format(new Date(2024, month, month + 1));
}

function* codesOf(type) {
	const upper = letters.toUpperCase();
	if (type === 'currency') return yield* Intl.supportedValuesOf('currency');
	if (type === 'script')
		return yield* 'Arab Armn Beng Cyrl Deva Ethi Geor Grek Hans Hant Hebr Jpan Khmr Kore Laoo Latn Mlym Mong Mymr Orya Taml Telu Thai Tibt'.split(
			' ',
		);
	for (const a of type === 'region' ? upper : letters)
		for (const b of type === 'region' ? upper : letters) {
			yield a + b;
			if (type === 'language') for (const c of letters) yield a + b + c;
		}
}

/** Returns pairs of letters, each with the binary logarithm of its count as a digit. `_` marks the ends of a word. */
function pairsOf(language, own) {
	const counts = new Map();
	const add = (text, weight) => {
		for (const [word] of text
			.toLowerCase()
			.replaceAll('\u0307', '')
			.matchAll(/\p{L}+/gu)) {
			const framed = `_${word}_`;
			for (let at = 1; at < framed.length; at += 1) {
				const pair = framed.slice(at - 1, at + 1);
				counts.set(pair, (counts.get(pair) ?? 0) + weight);
			}
		}
	};
	for (const name of namesOf(language)) add(name, 1);
	add(own, 4);
	return [...counts]
		.filter(([, count]) => count > 1)
		.sort(([a], [b]) => (a < b ? -1 : 1))
		.map(([pair, count]) => `${pair}${Math.min(9, Math.floor(Math.log2(count)))}`)
		.join('');
}

function charactersOf(language, own) {
	const counts = new Map();
	for (const text of [...namesOf(language), own, own])
		for (const char of text)
			if (/[\p{Script=Han}\p{Script=Hangul}]/u.test(char)) counts.set(char, (counts.get(char) ?? 0) + 1);
	return [...counts]
		.filter(([, count]) => count > 1)
		.map(([char]) => char)
		.sort()
		.join('');
}

const quoted = (entries) =>
	entries.map(([key, text]) => `\t${/-/.test(key) ? `'${key}'` : key}: '${text}',`).join('\n');
writeFileSync(
	'src/tables/letter-frequencies.ts',
	`/** Written by scripts/letters.mjs: which letters follow which, and which characters are common, by language. */

/** Pairs of letters, each with the binary logarithm of its count as a digit; \`_\` is where a word begins or ends. */
export const letterPairs: Readonly<Record<string, string>> = {
${quoted(Object.entries(names).map(([language, own]) => [language, pairsOf(language, own)]))}
};

/** Common characters of languages that have thousands. */
export const commonCharacters: Readonly<Record<string, string>> = {
${quoted(Object.entries(characters).map(([language, own]) => [language, charactersOf(language, own)]))}
};
`,
);
