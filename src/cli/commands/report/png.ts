/** A PNG of an SVG, drawn with a font of this machine: none is in the package. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { initWasm, Resvg } from '@resvg/resvg-wasm';
import { UsageError } from '../../frame/errors.js';

/** Screens of today have two dots for each one of the picture. */
const scale = 2;

/** Throws `UsageError` where this machine has no font. */
export async function pngOf(svg: string, env: NodeJS.ProcessEnv): Promise<Uint8Array> {
	const font = await sansSerif(env);
	if (font === null)
		throw new UsageError('this machine has no font for the words of a PNG', {
			hint: 'install one (Debian: apt install fonts-dejavu-core), or --save a file that ends in .svg',
		});
	loaded ??= initWasm(readFile(wasmFile()));
	await loaded;
	const picture = new Resvg(svg, {
		fitTo: { mode: 'zoom', value: scale },
		font: { fontBuffers: [font] },
	});
	return picture.render().asPng();
}

/** Once a process: a second time is refused. */
let loaded: Promise<void> | undefined;

/** In the build this module may be in any file of dist/ or of a folder in it. */
function wasmFile(): URL {
	const found = ['./resvg.wasm', '../resvg.wasm', '../../../../node_modules/@resvg/resvg-wasm/index_bg.wasm']
		.map((path) => new URL(path, import.meta.url))
		.find((url) => existsSync(url));
	if (found === undefined) throw new Error('resvg.wasm is missing from this installation');
	return found;
}

/** Names of font files, the ones of most languages first. */
const fonts = [
	...['dejavusans', 'notosans-regular', 'liberationsans-regular', 'arial', 'helvetica', 'helveticaneue'],
	...['segoeui', 'verdana', 'tahoma', 'roboto-regular', 'ubuntu-r', 'cantarell-regular', 'lato-regular'],
];

/** The best font file that can be read. */
async function sansSerif(env: NodeJS.ProcessEnv): Promise<Uint8Array | null> {
	const names = await Promise.all(
		fontFolders(env).map((folder) =>
			readdir(folder, { recursive: true }).then(
				(files) => files.map((file) => join(folder, file)),
				() => [],
			),
		),
	);
	const ranked = names
		.flat()
		.map((path) => ({ path, rank: rankOf(path) }))
		.filter(({ rank }) => rank >= 0)
		.sort((a, b) => a.rank - b.rank);
	for (const { path } of ranked) {
		const bytes = await readFile(path).catch(() => null);
		if (bytes !== null) return bytes;
	}
	return null;
}

/** -1: no font of this kind. */
function rankOf(path: string): number {
	const { name, ext } = parse(path.toLowerCase());
	if (!['.ttf', '.otf', '.ttc'].includes(ext)) return -1;
	const place = fonts.indexOf(name);
	if (place >= 0) return place;
	return name.endsWith('sans') || name.endsWith('sans-regular') ? fonts.length : -1;
}

/** Of Linux, macOS and Windows; where a folder is not there, it has no fonts. */
function fontFolders(env: NodeJS.ProcessEnv): string[] {
	const { HOME: home = '', XDG_DATA_HOME: own, XDG_DATA_DIRS: shared, WINDIR: windows } = env;
	const data = [own || join(home, '.local/share'), ...(shared || '/usr/local/share:/usr/share').split(':')];
	return [
		...data.map((folder) => join(folder, 'fonts')),
		...[join(home, '.fonts'), join(home, 'Library/Fonts'), '/Library/Fonts', '/System/Library/Fonts'],
		...(windows === undefined ? [] : [join(windows, 'Fonts')]),
	];
}
