/** Replaces only text that differs between two runs. The table lists all of it. */

const plain: readonly (readonly [what: string, pattern: RegExp, replacement: string])[] = [
	[
		'updates of a progress line, which a fast machine omits',
		/(?:\\x0d\\x1b\[K(?!\\x0d)[^\n]*?(?=\\x0d\\x1b\[K))*\\x0d\\x1b\[K/g,
		'',
	],
	['a progress line, which only a slow machine prints', /^! \w+ [\d,]+ of [\d,]+ · .*\n/gm, ''],
	['milliseconds in JSON and TAP', /("?duration_ms"?: ?)\d+/g, '$1<ms>'],
	['milliseconds in a sentence', /\b\d+ ms\b/g, '<ms> ms'],
	[
		'milliseconds in the last column of webhooks test',
		/^(\| (?:true|false)\t\d*\t[^\t\n]*\t)\d+$/gm,
		'$1<ms>',
	],
	[
		'milliseconds of smtp-test, backup and restore',
		/^(\| (?:127\.0\.0\.1\t|\S+\t\S+\.db\t).*\t)\d+$/gm,
		'$1<ms>',
	],
	[
		'the EHLO name of smtp-test, which may be this machine',
		/^(\| 127\.0\.0\.1\t.*\t)\d+\t[\w.[\]-]+\t/gm,
		'$1<ms>\t<name>\t',
	],
	['the EHLO name in JSON', /("ehlo_name": ?")[^"]+/g, '$1<name>'],
	['the EHLO name in a sentence, which may be wrapped', /\bEHLO(?: |\n\| +)[\w.[\]-]+/g, 'EHLO <name>'],
	['digests of tables', /("rows": ?\d+,(?:\n\| +)?"sha256": ?")[0-9a-f]{64}/g, '$1<sha256>'],
	['seconds of smoke', /\b\d+\.\d s\b/g, '<s> s'],
	['seconds in JUnit', /( time=")\d+\.\d{3}"/g, '$1<s>"'],
	['times of a next attempt, which are random', /2026-11-21T12:\d\d:\d\d\.(?!000000)\d{6}/g, '<moment>'],
	['these times in a table', /(DUE +(?:\\x1b\[22m)? +)2026-11-21 \d\d:\d\d/g, '$1<moment>'],
	['these times in a sentence', /(\btries(?:\n\|)? +again in(?:\n\|)? +)\d+ seconds?/g, '$1<s> seconds'],
	[
		'these times of deferred mail',
		/(\b(?:next|one at|due before) )2026-11-21 \d\d:\d\d(?::\d\d)?/g,
		'$1<moment>',
	],
	['these times in minutes', /\b(due in )\d+ minutes?/g, '$1<m> minutes'],
	['these times relative to now', /\bin \d+ s(?=\n)/g, 'in <s> s'],
	['shortened ids', /\b[0-9a-f]{8}-[0-9a-f-]*…[0-9a-f-]+/g, '<uuid>'],
	['shortened folders', /\/tmp\/mailctl-golden[\w-]*…\w*/g, '<folder>'],
	['the clock of this machine', /^([|<] [dD]ate: )\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT/gm, '$1<now>'],
	['its distance from the clock of the calls', /(\bservice's clock is )[^\n]*?(?= ahead of)/g, '$1<time>'],
	['the version of the program', /((?:^\| |"version": ?"))\d+\.\d+\.\d+(?=$|")/gm, '$1<version>'],
	['ports of servers', /127\.0\.0\.1:\d{5}\b/g, '127.0.0.1:<port>'],
	['ports without the host', /("port": |\| 127\.0\.0\.1\t)\d{5}\b/g, '$1<port>'],
	['free space on the disk', /\b[\d.]+ [KMGT]iB of [\d.]+ [KMGT]iB are free/g, '<size> of <size> are free'],
	['certificates', /(?<=-----BEGIN CERTIFICATE-----).*?(?=-----END)/g, '<certificate>'],
	['the version of Node.js', /(\bNode\.js |"node": ")\d+\.\d+\.\d+/g, '$1<version>'],
	['the machine', /("platform": ")[\w-]+/g, '$1<platform>'],
	['keys for DKIM', /\bp=[A-Za-z0-9+/]{43,}=*/g, 'p=<key>'],
];

const numbered: readonly (readonly [name: string, pattern: RegExp])[] = [
	['uuid', /\b(?!(\d)\1{7}-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g],
	['token', /\bmctl_[\w-]{43}/g],
	['secret', /\bwhsec_[A-Za-z0-9+/]{43}=/g],
	['job', /(?<=\bsend-)[0-9a-f]{12}\b/g],
	['run', /(?<=20261121[Tt]120000[-_])[0-9a-f]{6}(?![0-9a-f])/g],
	['link', /(?<=\/[couv]\/)[\w-]{20,}(?:=\\x0d\n\| [\w-]+)?/g],
];

type Settler = (text: string, known?: Readonly<Record<string, string>>) => string;

export function createSettler(known: Readonly<Record<string, string>> = {}): Settler {
	const seen = new Map<string, string>();
	const counts = new Map<string, number>();
	const number = (name: string, value: string) => {
		const key = `${name} ${value.replace('=\\x0d\n| ', '')}`;
		const found = seen.get(key);
		if (found !== undefined) return found;
		const count = (counts.get(name) ?? 0) + 1;
		counts.set(name, count);
		seen.set(key, `<${name}-${count}>`);
		return `<${name}-${count}>`;
	};
	const settle: Settler = (text, more = {}) => {
		let settled = text.replace(
			/(?<="raw_base64": ?)"([^"]*)"/g,
			(_, raw: string) =>
				`<base64 of> ${JSON.stringify(settle(Buffer.from(raw, 'base64').toString('latin1'), more))}`,
		);
		for (const [name, value] of Object.entries({ ...more, ...known }))
			settled = settled.replaceAll(value, `<${name}>`);
		for (const [, pattern, replacement] of plain) settled = settled.replace(pattern, replacement);
		for (const [name, pattern] of numbered)
			settled = settled.replace(pattern, (value) => number(name, value));
		return settled;
	};
	return settle;
}
