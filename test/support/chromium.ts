/** A real browser for tests: Debian's, or another installed one. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
	(path) => existsSync(path),
);

export const hasChromium = executablePath !== undefined;

export async function launchChromium(): Promise<Browser | undefined> {
	if (executablePath === undefined) return undefined;
	return chromium.launch({
		executablePath,
		args: (
			'--headless --no-sandbox --disable-gpu --disable-quic --no-first-run ' +
			'--disable-background-networking --disable-component-update --disable-sync'
		).split(' '),
	});
}

const pictures = process.env['MAILCTL_PICTURES'];

export async function picture(page: Page, name: string): Promise<void> {
	if (pictures === undefined) return;
	for (const colorScheme of ['light', 'dark'] as const) {
		await page.emulateMedia({ colorScheme });
		for (const width of [1280, 320]) {
			await page.setViewportSize({ width, height: 700 });
			await page.screenshot({ path: join(pictures, `${name}-${width}-${colorScheme}.png`) });
		}
	}
}
