/** How an option is spelled on the command line. */
import type { OptionSpec } from './command.js';

/** `emailReason` → `--email-reason`. */
export function flagOf(key: string): string {
	return `--${kebab(key)}`;
}

/** The other half of a tri-state option: `--no-auth`, or its own word (`--inactive`). */
export function offFlagOf(key: string, spec: Extract<OptionSpec, { kind: 'tri' }>): string {
	return `--${spec.off ?? `no-${kebab(key)}`}`;
}

/** `emailReason` → `email-reason`. */
export function kebab(key: string): string {
	return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** `email-reason` → `emailReason`, as commander names what it parsed. */
export function camel(name: string): string {
	return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
