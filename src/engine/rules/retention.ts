import { daysIn, type Micros, microsPerDay } from '../../api/datetime.js';

export interface Retention {
	messages: Micros | null;
	events: Micros | null;
	bodies: Micros | null;
}

export const retentionSettings = ['keep_messages', 'keep_events', 'keep_bodies'] as const;

export const proposedRetention: Readonly<Record<string, string>> = {
	keep_messages: '400d',
	keep_events: '400d',
	keep_bodies: '400d',
};

export function retentionOf(values: Readonly<Record<string, string>>): Retention {
	const kept = (name: (typeof retentionSettings)[number]): Micros | null => {
		const days = daysIn(values[name] ?? '');
		return days === null ? null : days * microsPerDay;
	};
	const [messages, events, own] = [kept('keep_messages'), kept('keep_events'), kept('keep_bodies')];
	return {
		messages,
		events,
		bodies: own === null || messages === null ? (own ?? messages) : Math.min(own, messages),
	};
}
