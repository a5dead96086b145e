export type Shell = 'bash' | 'zsh' | 'fish' | 'powershell';

export const filesLine = ':files';

const bash = `# bash completion for mailctl
_mailctl() {
	local line
	local current="\${COMP_WORDS[COMP_CWORD]}"
	COMPREPLY=()
	while IFS= read -r line; do
		if [[ $line == '${filesLine}' ]]; then
			compopt -o default
			return
		fi
		COMPREPLY+=("$line")
	done < <(mailctl completion words --bash=".$2" -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" ".$current" 2>/dev/null)
}
complete -F _mailctl mailctl
`;

/** Parses a word of bash. `quote` is the quote still open at its end: `"`, `'`, `$'` or none. */
export function readBash(word: string): { text: string; quote: string } {
	let text = '';
	let quote = '';
	for (let at = 0; at < word.length; at += 1) {
		const rest = word.slice(at);
		const opening = quote === '' ? /^(?:\$?"|\$?')/.exec(rest)?.[0] : undefined;
		if (opening !== undefined) {
			quote = opening === '$"' ? '"' : opening;
			at += opening.length - 1;
		} else if (quote !== '' && rest[0] === quote.at(-1)) quote = '';
		else if (rest[0] === '\\' && quote !== "'" && (quote !== '"' || /^\\[$`"\\]/.test(rest))) {
			text += rest[1] ?? '';
			at += 1;
		} else text += rest[0];
	}
	return { text, quote };
}

/**
 * Returns what bash inserts in place of `replaced`, so that `word` becomes `value`. `replaced` is the end of `word`.
 * Returns null if `word` cannot become `value`. Within an open quote, readline inserts the text unchanged. Readline
 * then closes the quote, unless the text ends with the quote character.
 */
export function bashReply(value: string, word: string, replaced: string): string | null {
	if (!word.endsWith(replaced)) return null;
	const { text, quote } = readBash(word.slice(0, word.length - replaced.length));
	if (!value.toLowerCase().startsWith(text.toLowerCase())) return null;
	const rest = value.slice(text.length);
	if (quote === '') return rest.replace(/[^\w@%+=:,./\u0080-\u{10ffff}-]/gu, '\\$&');
	const quoted =
		quote === '"'
			? // Within double quotes, bash expands `!` and keeps a backslash before it.
				rest.replace(/[$`"\\]/g, '\\$&').replaceAll('!', `"\\!"`)
			: quote === "'"
				? rest.replaceAll("'", "'\\''")
				: rest.replace(/['\\]/g, '\\$&');
	return quoted.endsWith(quote.slice(-1)) ? quoted + quote.slice(-1) : quoted;
}

const zsh = `#compdef mailctl
_mailctl() {
	local line
	local -a values shown
	for line in "\${(@f)$(mailctl completion words -- "\${(@Q)words[2,CURRENT-1]}" ".\${(Q)\${:-\${words[CURRENT]}\${compstate[quote]}}}" 2>/dev/null)}"; do
		[[ -z $line ]] && continue
		if [[ $line == '${filesLine}' ]]; then
			_files
			return
		fi
		values+=("\${line%%$'\\t'*}")
		shown+=("\${line//$'\\t'/  -- }")
	done
	(( \${#values} )) && compadd -l -d shown -a values
}
if [[ $funcstack[1] == _mailctl ]]; then
	_mailctl "$@"
else
	compdef _mailctl mailctl
fi
`;

const fish = `# fish completion for mailctl
function __mailctl_words
	set -l words (commandline -opc)
	set -l word
	for quote in '' \\' \\"
		set word (string unescape -- (commandline -ct)$quote); and break
	end
	set -l lines (mailctl completion words -- $words[2..-1] .$word 2>/dev/null)
	if test "$lines" = '${filesLine}'
		__fish_complete_path (commandline -ct)
	else
		printf '%s\\n' $lines
	end
end
complete -c mailctl -f -a '(__mailctl_words)'
`;

const powershell = `# PowerShell completion for mailctl
Register-ArgumentCompleter -Native -CommandName mailctl -ScriptBlock {
	param($word, $ast, $position)
	$words = @($ast.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $position } | ForEach-Object { $_.ToString() })
	mailctl completion words -- @words ".$word" 2>$null | ForEach-Object {
		if ($_ -eq '${filesLine}') { return }
		$value, $about = $_ -split "\`t", 2
		if (-not $about) { $about = $value }
		$text = if ($value -match '^[\\w./-][\\w@./:+=-]*$') { $value } else { "'" + ($value -replace '[\\u0027\\u2018-\\u201b]', '$0$0') + "'" }
		[System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $about)
	}
}
`;

export const scripts: Readonly<Record<Shell, { text: string; load: string }>> = {
	bash: { text: bash, load: 'Put this into ~/.bashrc:\n\n  source <(mailctl completion bash)' },
	zsh: { text: zsh, load: 'Put this into ~/.zshrc, after compinit:\n\n  source <(mailctl completion zsh)' },
	fish: {
		text: fish,
		load: 'Run this once:\n\n  mailctl completion fish > ~/.config/fish/completions/mailctl.fish',
	},
	powershell: {
		text: powershell,
		load: 'Put this into $PROFILE:\n\n  mailctl completion powershell | Out-String | Invoke-Expression',
	},
};
