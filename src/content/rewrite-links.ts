import {
	fillSlot,
	htmlValue,
	parseTemplate,
	renderTemplate,
	type Slot,
	type Template,
} from './fill-variables.js';
import { isTrackable, type Link } from './links.js';
import type { BodyValues } from './part.js';
import type { ReadHtml } from './read-html.js';
import type { Tracking } from './types.js';

type TrackedSlot = Slot | LinkSlot | { readonly kind: 'pixel' };

interface LinkSlot extends Pick<Link, 'depends' | 'target'> {
	readonly kind: 'link';
	readonly position: number;
	readonly written: Template;
}

/** The pixel is visible but out of the flow, because some programs do not load hidden images. */
const pixel = {
	before: '<img src="',
	after: `" width="1" height="1" alt="" style="${[
		'position:absolute',
		'float:left',
		'display:block',
		'width:1px',
		'height:1px',
		'margin:-1px -1px 0 0',
		'padding:0',
		'border:0',
	]
		.map((declaration) => `${declaration}!important`)
		.join(';')}">`,
};

export function trackedTemplate({ html, links, guards, bodyEnd }: ReadHtml): Template<TrackedSlot> {
	const literals = [''];
	const slots: TrackedSlot[] = [];
	let from = 0;
	const addText = (end: number) => {
		const text = parseTemplate(html.slice(from, end), guards, from);
		append(literals, text.literals[0] ?? '');
		// Do not spread the list: hundreds of thousands of arguments overflow the stack.
		for (let index = 1; index < text.literals.length; index++) literals.push(text.literals[index] ?? '');
		for (const slot of text.slots) slots.push(slot);
		from = end;
	};
	const addPixel = () => {
		append(literals, pixel.before);
		slots.push({ kind: 'pixel' });
		literals.push(pixel.after);
	};
	let isPixelDue = true;
	for (const [position, { start, end, target, depends }] of links.entries()) {
		if (isPixelDue && start > bodyEnd) {
			addText(bodyEnd);
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
		addText(bodyEnd);
		addPixel();
	}
	addText(html.length);
	return { literals, slots };
}

export function escapedTracking({ openUrl, clickUrl, clickEnds }: Tracking): Tracking {
	return { openUrl: htmlValue(openUrl), clickUrl: htmlValue(clickUrl), clickEnds };
}

/** URLs are escaped already (`escapedTracking`), except for their ends. */
export function fillTracked(
	slot: TrackedSlot,
	{ variables, tracking }: BodyValues,
	write: (text: string) => void,
): void {
	if (slot.kind === 'variable') write(fillSlot(slot, variables, htmlValue));
	else if (slot.kind === 'pixel') write(tracking?.openUrl ?? '');
	else if (tracking === null || !isTrackable(slot, variables)) {
		write(renderTemplate(slot.written, variables, htmlValue));
	} else {
		write(tracking.clickUrl);
		write(htmlValue(tracking.clickEnds[slot.position] ?? ''));
	}
}

function append(literals: string[], text: string): void {
	literals[literals.length - 1] += text;
}
