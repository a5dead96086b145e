/** The build and Vitest import a `.sql` file as its text (`scripts/sync-twin.mjs`). */
declare module '*.sql' {
	const text: string;
	// biome-ignore lint/style/noDefaultExport: esbuild's text loader exports only a default.
	export default text;
}
