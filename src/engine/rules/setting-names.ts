export const settingNames = {
	public_url:
		'the URL recipients reach this service by; links in mails and pages start with it; without one they point to where serve listened last',
	time_zone: 'the time zone whose days the report counts (IANA name)',
	smtp_url: 'where mail is handed over: smtp[s]://USER@HOST:PORT',
	smtp_password: 'the password of the user of smtp_url',
	smtp_ca:
		'certificates in PEM that alone vouch for the mail server, - < ca.pem; with them nothing is sent without TLS; without them the authorities this machine trusts do',
	smtp_ehlo_name:
		'the name said to the mail server in EHLO: mail.example.com; without one it is the name of this machine if that has a dot, else the domain of public_url or of the sender',
	allow_private_webhooks: 'true lets notifications go to private and loopback addresses',
	bounce_address:
		'where bounces come back to, bounces@example.com: each message gets a return path bounces+TOKEN@example.com; without one they go to the sender',
	send_limit:
		'the most messages in any time of a length, such as 100/m; of 100/h, 3/s both hold; all processes together; copies (cc, bcc) do not count',
	sender_domain_limits:
		'the same by the domain of the sender: example.com=100/h, or *=10/s for each other domain',
	recipient_domain_limits:
		'the same by the domain of the recipient: gmail.com=100/h, gmail.com=3/s, *=10/s, where several of one domain all hold; of the to address, copies do not count',
	unsubscribe_scope:
		'what unsubscribing is of: list, that whose mail carried the link, the page offers all mail too; or all, every list',
	page_sender_name:
		'the name of the sender on the pages that mails lead to (unsubscribe and others); without one they name the sender of the mail',
	page_logo_url:
		'the logo on these pages: an https URL of a picture, or data:image/TYPE;base64,…; the only thing they load from elsewhere',
	page_color:
		'the colour of their buttons and links, #rrggbb; text on and in it is made readable, in the light and in the dark',
	keep_messages:
		'how long messages stay that are over, 400d or 57w, with their attempts, events and texts; figures, suppressions and the links of their mails stay for good; without one all stays',
	keep_events:
		'how long each single open, click and unsubscription stays, with its address and program; that and when a message was first opened stays with the message',
	keep_bodies:
		'how long texts and files stay after they were sent last; the targets of their links stay; never longer than keep_messages',
	requests_per_second: 'how often one API token may ask, more is answered 429; serve reads it when it starts',
} as const;

export type SettingName = keyof typeof settingNames;
