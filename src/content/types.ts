export interface Recipient {
	to: string;
	messageId: string;
	dateMs: number;
	variables: Readonly<Record<string, string>>;
	tracking: Tracking | null;
	listUnsubscribeUrl: string | null;
}

export interface Tracking {
	openUrl: string;
	clickUrl: string;
	clickEnds: readonly string[];
}
