/** The public addresses that every message may carry. */
import type { Uuid } from '../../api/records.js';
import type { Tracking } from '../../content/types.js';
import { type Keyring, signClickTokens, signToken } from './tokens.js';

export interface PublicLinks {
	unsubscribe_url: string;
	view_url: string;
}

/** Where links lead and what signs them. */
export interface LinkOptions {
	/** `null`: no links, and bulk mail carries no List-Unsubscribe. */
	publicUrl: string | null;
	keyring: Keyring | null;
}

/** What the links of one message are made from; `publicUrl` with or without a path and a final slash. */
export interface MessageLinks {
	publicUrl: string;
	keyring: Keyring;
	message: Uuid;
}

/** Null when there is nowhere to lead to, or nothing to sign with. */
export function messageLinks({ publicUrl, keyring }: LinkOptions, message: Uuid): MessageLinks | null {
	return publicUrl === null || keyring === null ? null : { publicUrl, keyring, message };
}

/** `{publicUrl}/u/{token}` and `/v/{token}`. */
export function publicLinks(links: MessageLinks): PublicLinks {
	return { unsubscribe_url: pageUrl(links, 'u'), view_url: pageUrl(links, 'v') };
}

/** Of the public links only those that are named: each costs a signature, and most messages use one. */
export function usedLinks(links: MessageLinks, names: readonly string[]): Partial<PublicLinks> {
	return {
		...(names.includes('unsubscribe_url') && { unsubscribe_url: pageUrl(links, 'u') }),
		...(names.includes('view_url') && { view_url: pageUrl(links, 'v') }),
	};
}

/** `{publicUrl}/o/{token}.gif`, and `/c/{token}` for each of so many links. */
export function trackingOf({ publicUrl, keyring, message }: MessageLinks, links: number): Tracking {
	const base = withoutSlash(publicUrl);
	const openUrl = `${base}/o/${signToken(keyring, 'o', message)}.gif`;
	if (links === 0) return { openUrl, clickUrl: '', clickEnds: [] };
	const { begin, ends } = signClickTokens(keyring, message, links);
	return { openUrl, clickUrl: `${base}/c/${begin}`, clickEnds: ends };
}

/**
 * What a message's variables are filled with, in the mail and whenever somebody follows one of its links: whatever the
 * message brings goes over the built-ins.
 */
export function recipientVariables(
	pages: Partial<PublicLinks>,
	variables: Readonly<Record<string, string>>,
): Record<string, string> {
	return { ...pages, ...variables };
}

function pageUrl({ publicUrl, keyring, message }: MessageLinks, purpose: 'u' | 'v'): string {
	return `${withoutSlash(publicUrl)}/${purpose}/${signToken(keyring, purpose, message)}`;
}

function withoutSlash(url: string): string {
	return url.replace(/\/+$/, '');
}
