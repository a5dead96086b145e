/** Distinguishes opens and clicks by bots and proxies from opens and clicks by people (api-decisions 30). */
import { type Micros, microsPerSecond } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';

export type MachineReason =
	| 'image_proxy'
	| 'scanner'
	| 'robot'
	| 'program'
	| 'headless'
	| 'head'
	| 'prefetch';

export interface Visit {
	kind: 'open' | 'click';
	method: string;
	headers: Readonly<Record<string, string | undefined>>;
}

interface KnownProgram {
	readonly reason: MachineReason;
	readonly pattern: RegExp;
	readonly only?: Visit['kind'];
}

const knownPrograms: readonly KnownProgram[] = [
	// These proxies fetch once for all their users, often before anyone reads the mail, and hide the reader.
	{ reason: 'image_proxy', pattern: /GoogleImageProxy|ggpht\.com|YahooMailProxy|YahooCacheSystem/i },
	// Apple's Mail Privacy Protection loads every picture of every mail, and sends only this User-Agent.
	{ reason: 'image_proxy', pattern: /^Mozilla\/5\.0$/ },
	// Gmail fetches pictures during delivery with this combination, which no browser sends.
	{ reason: 'image_proxy', pattern: /Edge\/12\.246 Mozilla\/5\.0$/ },
	{
		reason: 'scanner',
		pattern:
			/Barracuda|BitDefender|Cloudmark|Fortinet|FortiGuard|Forcepoint|McAfee|Mimecast|Netcraft|PhishTank|Proofpoint|SafeBrowsing|Safelinks|Sophos|Symantec|Trend ?Micro|urlscan|VirusTotal|WebSense|Zscaler/i,
	},
	// Office requests a link before it opens the browser. Its opens count, because people read mail in Outlook.
	{ reason: 'scanner', pattern: /\bms-?office\b|Microsoft Office/i, only: 'click' },
	{ reason: 'headless', pattern: /Headless|PhantomJS|Puppeteer|Playwright|Selenium/i },
	{ reason: 'program', pattern: /^$/ },
	{
		reason: 'program',
		pattern:
			/^(aiohttp|Apache-HttpClient|axios|curl|Go-http-client|Guzzle|HTTPie|httpx|Java|libwww-perl|lwp|node|PHP|PostmanRuntime|python|Ruby|undici|Wget)\b/i,
	},
	// Cubot is a brand of phones, not a bot.
	{
		reason: 'robot',
		pattern: /(?<!\bcu)bot\b|crawler|spider|slurp|externalhit|linkpreview|UriPreview|WhatsApp\//i,
	},
];

export function machineRequest({ kind, method, headers }: Visit): MachineReason | null {
	if (method === 'HEAD') return 'head';
	if (prefetchHeaders.some((name) => /prefetch|prerender|preview/i.test(headers[name] ?? '')))
		return 'prefetch';
	const userAgent = (headers['user-agent'] ?? '').trim().slice(0, maxLooked);
	const known = knownPrograms.find(
		({ only, pattern }) => (only === undefined || only === kind) && pattern.test(userAgent),
	);
	return known?.reason ?? null;
}

/** No person opens a mail within two seconds of delivery. The store counts them from `sent_at`. */
export const tooSoon: Micros = 2 * microsPerSecond;

/** Recognizes a scanner by clicks on several links of a message. Its first two clicks still count as a person's. */
export class ClickWindow {
	readonly #maxMessages: number;
	readonly #clicked = new Map<Uuid, Map<number, Micros>>();

	constructor(maxMessages = 10_000) {
		this.#maxMessages = maxMessages;
	}

	isBurst({ message, link, at }: { message: Uuid; link: number; at: Micros }): boolean {
		const links = this.#clicked.get(message) ?? new Map<number, Micros>();
		this.#clicked.delete(message);
		for (const [other, clickedAt] of links) {
			if (clickedAt + burst.seconds * microsPerSecond < at) links.delete(other);
		}
		if (links.size < burst.links || links.has(link)) links.set(link, at);
		this.#clicked.set(message, links);
		const oldest = this.#clicked.keys().next().value;
		if (this.#clicked.size > this.#maxMessages && oldest !== undefined) this.#clicked.delete(oldest);
		return links.size >= burst.links;
	}
}

const prefetchHeaders = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'];
const maxLooked = 500;
const burst = { links: 3, seconds: 10 };
