/** What is declared of a deployment: resources by their kinds and names. */
import { UsageError } from '../../frame/errors.js';

/** The kinds of resources, in the order in which they are applied. */
export const kinds = ['settings', 'senders', 'fields', 'lists', 'templates', 'webhooks'] as const;
export type Kind = (typeof kinds)[number];

export type Value = string | boolean | null;

/** A resource as the file has it; `values` are keys of the wire, absent ones are left as they are. */
export interface Declared {
	/** How it is known: a name, a variable, an address, `TYPE URL` of a webhook. */
	name: string;
	/** The name that it had: one of that name is meant where there is none of this. */
	was?: string;
	values: Readonly<Record<string, Value>>;
	/** `mail.yaml:12:3`, or the folder of a template. */
	where: string;
}

/** By kind; a kind that the file does not name is left alone. */
export type Declaration = Partial<Record<Kind, readonly Declared[]>>;

/** More of them mean that it is another kind of file. */
const mostFindings = 20;

/** The first finding as the error, the others as its details; nothing without any. */
export function refuseFindings(findings: readonly string[]): void {
	const [first, ...others] = findings.slice(0, mostFindings);
	if (first !== undefined) throw new UsageError(first, { ...(others.length > 0 && { details: others }) });
}
