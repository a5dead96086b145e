/** Parses one line as a shell does: quotes, `NAME=value` in front, `< FILE` or `<<< TEXT` at the end. */

export interface ShellLine {
	env: Record<string, string>;
	argv: string[];
	input: string | null;
	text: string | null;
}

export function parseShellLine(line: string): ShellLine {
	const words = [...line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
		word.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single?: string, double?: string) => single ?? double ?? ''),
	);
	const start = words.indexOf('mailctl');
	if (start === -1) throw new Error(`not a call of mailctl: ${line}`);
	const end = words.findIndex((word) => /^(<|<<<|>)$/.test(word));
	const after = (sign: string) => (words[end] === sign ? (words[end + 1] ?? '') : null);
	return {
		env: Object.fromEntries(words.slice(0, start).map((word) => word.split('=', 2))),
		argv: words.slice(start + 1, end === -1 ? undefined : end),
		input: after('<'),
		text: after('<<<'),
	};
}
