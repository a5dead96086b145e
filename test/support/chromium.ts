/** A real browser for tests: Debian's, or another one that the machine has. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
	(path) => existsSync(path),
);

/** Whether this machine has one; without, tests of pages are skipped. */
export const hasChromium = executablePath !== undefined;

/** Undefined: there is none. */
export async function launchChromium(): Promise<Browser | undefined> {
	if (executablePath === undefined) return undefined;
	return chromium.launch({
		executablePath,
		args: [
			'--headless',
			'--no-sandbox',
			'--disable-gpu',
			'--disable-quic',
			'--no-first-run',
			'--disable-background-networking',
			'--disable-component-update',
			'--disable-sync',
		],
	});
}

const pictures = process.env['MAILCTL_PICTURES'];

/** Light and dark, wide and narrow, to the folder of `MAILCTL_PICTURES`; without that variable nothing. */
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
