/** A picture of what a program prints in a terminal, as SVG that pages of code hosts show. */
import { escapeHtml } from '../../../src/api/quote.js';

export interface TerminalPicture {
	command: string;
	/** Plain text; no line is wider than `columns`. */
	output: string;
	columns: number;
}

const cell = { width: 8.4, height: 19 };
const margin = 16;
const colors = { back: '#0d1117', text: '#e6edf3', prompt: '#7ee787', quiet: '#9198a1' };

export function drawTerminal({ command, output, columns }: TerminalPicture): string {
	const printed = output.replace(/\n+$/, '').split('\n');
	const lines = [{ text: `$ ${command}`, color: colors.prompt }, ...printed.map(toLine)];
	const width = Math.round(columns * cell.width + 2 * margin);
	const height = lines.length * cell.height + 2 * margin;
	const texts = lines.map(({ text, color }, index) => {
		const y = margin + (index + 0.75) * cell.height;
		return text === ''
			? []
			: [`<text x="${margin}" y="${y}" fill="${color}">${escapeHtml(text).replaceAll(' ', '\u00a0')}</text>`];
	});
	return `${[
		`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(command)} in a terminal">`,
		`<rect width="100%" height="100%" rx="8" fill="${colors.back}"/>`,
		'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">',
		...texts.flat(),
		'</g>',
		'</svg>',
	].join('\n')}\n`;
}

function toLine(text: string): { text: string; color: string } {
	return { text: text.trimEnd(), color: text.startsWith('  ') ? colors.quiet : colors.text };
}
