import type { OnLoadArgs, Plugin } from 'esbuild';
import type { Plugin as VitePlugin } from 'vite';

export function synchronous(text: string): string;
export const syncTwin: Plugin;
export function isTwin(args: Pick<OnLoadArgs, 'namespace'>): boolean;
export const viteSyncTwin: VitePlugin;
