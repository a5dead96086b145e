/**
 * The HTML of a message whose opens and clicks are counted: the values of its links are cut out and a pixel is put in;
 * all the rest stays as it is, byte for byte.
 */
import { readMarkup } from './attributes.js';
import { isTrackable, type Link } from './links.js';
import type { BodyValues } from './part.js';
import type { Tracking } from './types.js';
import type { UrlGuard } from './urls.js';
import {
	escapeHtml,
	fillSlot,
	parseTemplate,
	renderTemplate,
	type Slot,
	type Template,
} from './variables.js';

/** A variable, a link's address, or the pixel's. */
export type TrackedSlot = Slot | LinkSlot | { readonly kind: 'pixel' };

/** A link; `written` is what stands there when a recipient's values make it something that cannot be followed. */
interface LinkSlot extends Pick<Link, 'depends' | 'target'> {
	readonly kind: 'link';
	readonly position: number;
	readonly written: Template;
}

/** Around the pixel's address. Nothing hides it: some mail programs do not load what is not shown. */
const pixel = {
	before: '<img src="',
	after: '" width="1" height="1" alt="" style="border:0;width:1px;height:1px">',
};

/** Cuts an HTML text at its variables and its links, and puts the pixel before the last `</body>` or at the end. */
export function trackedTemplate(
	html: string,
	links: readonly Link[],
	guards: ReadonlyMap<number, UrlGuard>,
): Template<TrackedSlot> {
	const literals = [''];
	const slots: TrackedSlot[] = [];
	let from = 0;
	const addText = (end: number) => {
		const text = parseTemplate(html.slice(from, end), guards, from);
		append(literals, text.literals[0] ?? '');
		literals.push(...text.literals.slice(1));
		slots.push(...text.slots);
		from = end;
	};
	const addPixel = () => {
		append(literals, pixel.before);
		slots.push({ kind: 'pixel' });
		literals.push(pixel.after);
	};
	const pixelAt = readMarkup(html, () => false).bodyEnd ?? html.length;
	let isPixelDue = true;
	for (const [position, { start, end, target, depends }] of links.entries()) {
		if (isPixelDue && start > pixelAt) {
			addText(pixelAt);
			addPixel();
			isPixelDue = false;
		}
		addText(start);
		const written = parseTemplate(html.slice(start, end), guards, start);
		slots.push({ kind: 'link', position, target, depends, written });
		literals.push('');
		from = end;
	}
	if (isPixelDue) {
		addText(pixelAt);
		addPixel();
	}
	addText(html.length);
	return { literals, slots };
}

/** What stands in each link and in the pixel, escaped once a message. */
export function escapedTracking({ openUrl, clickUrl, clickEnds }: Tracking): Tracking {
	return { openUrl: escapeHtml(openUrl), clickUrl: escapeHtml(clickUrl), clickEnds };
}

/**
 * Writes what stands in a slot for this recipient; without tracking, what its author wrote. The addresses are escaped
 * (`escapedTracking`), but for their ends.
 */
export function fillTracked(
	slot: TrackedSlot,
	{ variables, tracking }: BodyValues,
	write: (text: string) => void,
): void {
	if (slot.kind === 'variable') write(fillSlot(slot, variables, escapeHtml));
	else if (slot.kind === 'pixel') write(tracking?.openUrl ?? '');
	else if (tracking === null || !isTrackable(slot, variables)) {
		write(renderTemplate(slot.written, variables, escapeHtml));
	} else {
		write(tracking.clickUrl);
		write(escapeHtml(tracking.clickEnds[slot.position] ?? ''));
	}
}

function append(literals: string[], text: string): void {
	literals[literals.length - 1] += text;
}
