/** The scripts that shells load: each asks `mailctl completion words` for what a Tab offers. */

/** Shells that have a script. */
export type Shell = 'bash' | 'zsh' | 'fish' | 'powershell';

/** `:files` alone tells a script to complete a path. */
export const filesLine = ':files';

const bash = `# bash completion for mailctl
_mailctl() {
	local line value quoted
	local current="\${COMP_WORDS[COMP_CWORD]}"
	COMPREPLY=()
	while IFS= read -r line; do
		if [[ $line == '${filesLine}' ]]; then
			compopt -o default
			return
		fi
		value="\${line%%$'\\t'*}"
		if [[ $current == [\\'\\"]* ]]; then
			COMPREPLY+=("$value")
		else
			printf -v quoted %q "$value"
			COMPREPLY+=("$quoted")
		fi
	done < <(mailctl completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" ".$current" 2>/dev/null)
}
complete -F _mailctl mailctl
`;

const zsh = `#compdef mailctl
_mailctl() {
	local line
	local -a values shown
	for line in "\${(@f)$(mailctl completion words -- "\${(@Q)words[2,CURRENT-1]}" ".\${(Q)words[CURRENT]}" 2>/dev/null)}"; do
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
	set -l lines (mailctl completion words -- $words[2..-1] .(commandline -ct) 2>/dev/null)
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
		$text = if ($value -match '[^\\w@.,:/+=-]') { "'" + ($value -replace "'", "''") + "'" } else { $value }
		[System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $about)
	}
}
`;

/** What loads each of them, for its help. */
export const scripts: Readonly<Record<Shell, { text: string; load: string }>> = {
	bash: { text: bash, load: 'Put this into ~/.bashrc:\n\n  source <(mailctl completion bash)' },
	zsh: { text: zsh, load: 'Put this into ~/.zshrc, behind compinit:\n\n  source <(mailctl completion zsh)' },
	fish: {
		text: fish,
		load: 'Call this once:\n\n  mailctl completion fish > ~/.config/fish/completions/mailctl.fish',
	},
	powershell: {
		text: powershell,
		load: 'Put this into $PROFILE:\n\n  mailctl completion powershell | Out-String | Invoke-Expression',
	},
};
