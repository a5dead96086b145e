const maxWord = 75;
const overhead = '=?UTF-8?Q??='.length;

/** Separates words by `CRLF SP`, which readers drop; a word holds whole code points. */
export function encodeWords(text: string, firstLength = maxWord): string {
	// Quoted-printable keeps plain text readable; base64 is used where it is shorter.
	const points = Array.from(text);
	const plain = points.reduce((sum, point) => sum + quote(point).length, 0);
	const isQuoted = plain <= Math.ceil(Buffer.byteLength(text) / 3) * 4;
	const cost = isQuoted
		? (point: string) => quote(point).length
		: (point: string) => Buffer.byteLength(point);
	const room = (length: number) => (isQuoted ? length - overhead : Math.floor((length - overhead) / 4) * 3);
	const words = chunk(points, cost, { first: room(Math.min(firstLength, maxWord)), rest: room(maxWord) });
	return words.map((word) => (isQuoted ? quotedWord(word) : base64Word(word))).join('\r\n ');
}

function chunk(
	points: readonly string[],
	cost: (point: string) => number,
	room: { first: number; rest: number },
): string[] {
	const words: string[] = [];
	let word = '';
	let used = 0;
	for (const point of points) {
		const size = cost(point);
		if (word !== '' && used + size > (words.length === 0 ? room.first : room.rest)) {
			words.push(word);
			word = '';
			used = 0;
		}
		word += point;
		used += size;
	}
	return [...words, word];
}

function quotedWord(word: string): string {
	return `=?UTF-8?Q?${Array.from(word, quote).join('')}?=`;
}

function base64Word(word: string): string {
	return `=?UTF-8?B?${Buffer.from(word, 'utf8').toString('base64')}?=`;
}

/** RFC 2047 s.5(3): characters allowed in a phrase, the strictest of its three places. */
const ascii: readonly string[] = Array.from({ length: 128 }, (_, code) => {
	const char = String.fromCharCode(code);
	if (/[A-Za-z0-9!*+\-/]/.test(char)) return char;
	return char === ' ' ? '_' : hex(code);
});

function quote(point: string): string {
	const known = ascii[point.charCodeAt(0)];
	return known ?? Array.from(Buffer.from(point, 'utf8'), hex).join('');
}

function hex(octet: number): string {
	return `=${octet.toString(16).toUpperCase().padStart(2, '0')}`;
}
