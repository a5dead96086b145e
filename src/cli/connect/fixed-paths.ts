/** Paths of the service document that name no record: below the right base URL each deployment has them. */
import { routes } from '../../http/routes.js';

/** With whatever the base URL has before it. */
export function isFixedPath(path: string): boolean {
	const isFixed = (own: string) => !own.includes('{') && !own.startsWith('/ext/');
	return Object.values(routes).some((route) => isFixed(route.path) && path.endsWith(route.path));
}
