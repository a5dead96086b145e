/** The file that `apply` and `diff` read. */

export const declaredOptions = {
	file: {
		kind: 'file',
		short: 'f',
		required: true,
		summary: 'YAML or JSON; - is standard input',
		ask: 'File, YAML or JSON:',
	},
	prune: { kind: 'flag', summary: 'delete what the file does not have, of the kinds that it names' },
} as const;

export const aboutFile =
	'Keys are `lists` (name, email_reason), `fields` (variable, name), `webhooks` (type and url, is_auth_enabled, login, ' +
	'password), `senders` (email), and on databases and servers of mailctl `templates` (name, text_body, html_body), on a ' +
	'database `settings`. Bodies and passwords may come from a file beside it (`html_body_file`, `password_file`), ' +
	// biome-ignore lint/suspicious/noTemplateCurlyInString: shows how the file names a variable
	'passwords and settings from the environment (`${NAME}`). A key that is missing is left as it is.';
