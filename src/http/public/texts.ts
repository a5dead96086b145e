/** Every word that readers of mail see on the public pages. Values are escaped by the pages, not here. */

export const language = 'en';

export const texts = {
	unsubscribe: {
		title: 'Unsubscribe',
		question: (address: string, sender: string) => `Stop sending mailings from ${sender} to ${address}?`,
		list: (name: string) => `You get them as a reader of “${name}”.`,
		button: 'Unsubscribe',
		note: 'Nothing changes until you press the button.',
	},
	unsubscribed: {
		title: 'You are unsubscribed',
		done: (address: string, sender: string) => `${address} will get no more mailings from ${sender}.`,
		note: 'Mail that is on its way already may still arrive.',
		oneClick: 'Unsubscribed.',
	},
	notFound: {
		title: 'This link does not work',
		why: 'It may be incomplete, or older than what is kept here.',
		what: 'Open it once more from the mail, or write to whoever sent it.',
	},
	failed: {
		title: 'That did not work',
		why: 'Something is wrong on our side. Please try again in a minute.',
		notUnsubscribed:
			'You are not unsubscribed yet: something is wrong on our side. Please try again in a minute.',
		button: 'Try again',
	},
	wrongMethod: 'This address cannot be used in this way.',
	noSubject: '(no subject)',
} as const;
