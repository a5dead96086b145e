type Rgb = readonly [number, number, number];

const white: Rgb = [255, 255, 255];
const black: Rgb = [0, 0, 0];
const lightPaper: Rgb = white;
const darkPaper: Rgb = [0x1c, 0x1f, 0x26];

/** Minimum contrast of WCAG 2.2 s.1.4.3 (AA). */
const minContrast = 4.5;

export function styleSheet(color: string): string {
	const given = parseColor(color);
	const onButton = contrast(given, white) >= contrast(given, black) ? white : black;
	return `
:root { color-scheme: light dark; --paper: #fff; --ground: #f3f4f6; --ink: #1a1d23; --faint: #555b66; --line: #d9dce1; --accent: ${hex(readable(given, lightPaper, black))}; --button: ${hex(given)}; --on-button: ${hex(onButton)}; }
@media (prefers-color-scheme: dark) {
:root { --paper: ${hex(darkPaper)}; --ground: #111318; --ink: #eceef2; --faint: #a9b0bc; --line: #333843; --accent: ${hex(readable(given, darkPaper, white))}; }
header img { padding: 0.5rem 0.75rem; border-radius: 8px; background: #fff; }
}
* { box-sizing: border-box; }
body { margin: 0; padding: clamp(1rem, 6vh, 5rem) 1rem; background: var(--ground); color: var(--ink); font: 1.0625rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
header { max-width: 36rem; margin: 0 auto 1rem; font-weight: 600; }
header img { display: block; max-width: min(100%, 16rem); max-height: 5rem; object-fit: contain; }
main { max-width: 36rem; margin: 0 auto; padding: clamp(1.25rem, 5vw, 2.5rem); background: var(--paper); border: 1px solid var(--line); border-radius: 12px; }
h1 { margin: 0 0 1rem; font-size: 1.6rem; line-height: 1.25; text-wrap: balance; }
p { margin: 0 0 1rem; }
main > :last-child { margin-bottom: 0; }
.note { color: var(--faint); font-size: 0.9375rem; }
.text { white-space: pre-wrap; }
a { color: var(--accent); }
form { margin: 1.5rem 0; }
fieldset { margin: 0 0 1.5rem; padding: 0; border: 0; }
legend { margin: 0 0 0.25rem; padding: 0; font-weight: 600; }
label { display: flex; gap: 0.75rem; align-items: center; min-height: 44px; padding: 0.4rem 0; cursor: pointer; }
input { flex: none; width: 1.25rem; height: 1.25rem; margin: 0; accent-color: var(--accent); }
button { min-height: 44px; padding: 0.6rem 1.5rem; border: 1px solid var(--accent); border-radius: 8px; background: var(--button); color: var(--on-button); font: inherit; font-weight: 600; cursor: pointer; }
button:hover { text-decoration: underline; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
@media (max-width: 30rem) { button { width: 100%; } }
`;
}

function readable(color: Rgb, paper: Rgb, towards: Rgb): Rgb {
	for (let step = 0; step < 20; step++) {
		const mixed = mix(color, towards, step / 20);
		if (contrast(mixed, paper) >= minContrast) return mixed;
	}
	return towards;
}

function mix(from: Rgb, to: Rgb, share: number): Rgb {
	const channel = (at: 0 | 1 | 2) => Math.round(from[at] + (to[at] - from[at]) * share);
	return [channel(0), channel(1), channel(2)];
}

function contrast(a: Rgb, b: Rgb): number {
	const [one, other] = [luminance(a), luminance(b)];
	return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

function luminance([red, green, blue]: Rgb): number {
	const linear = (value: number) => {
		const share = value / 255;
		return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
	};
	return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

function parseColor(text: string): Rgb {
	const value = Number.parseInt(text.slice(1), 16);
	return [value >> 16, (value >> 8) & 255, value & 255];
}

function hex(color: Rgb): string {
	return `#${color.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
}
