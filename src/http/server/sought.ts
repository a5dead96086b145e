/** What must be there before a body is read or a method refused: DRF finds objects first. */
import { notFound } from '../../api/errors.js';
import { maxBatchBytes, maxBodyBytes, type Operation, routes } from '../routes.js';
import { readJson } from './body.js';
import type { Looked } from './look.js';
import { type PathIds, type Place, readIds } from './match.js';
import { operations, type Served } from './operations.js';

export interface Reading {
	asked: Looked;
	operation: Operation;
	ids: PathIds;
}

/** DRF finds the object before it reads the body: an unknown one is a 404 whatever the body is. */
export async function readBody(served: Served, { asked, operation, ids }: Reading): Promise<unknown> {
	try {
		return await readJson(asked.request, operation in batches ? maxBatchBytes : maxBodyBytes);
	} catch (error) {
		const sought = soughtBefore(operation);
		if (sought !== null) await operations[sought](served, { ...ids, query: asked.query, body: {}, call: {} });
		throw error;
	}
}

const batches = { 'ext.imports.put': true, 'ext.mailings.put': true, 'ext.mailings.putRequests': true };

function soughtBefore(operation: Operation): Operation | null {
	if (operation === 'ext.subscribers.merge') return 'subscribers.get';
	if (operation === 'subscribers.create') return 'lists.get';
	const get = operation.replace(/\.(replace|patch)$/, '.get');
	return get !== operation && isOperation(get) ? get : null;
}

function isOperation(name: string): name is Operation {
	return Object.hasOwn(routes, name);
}

/** What lies under a list is not there when the list is not, whatever the method. Operations look for themselves. */
export async function assertList({ api }: Served, { path, values }: Place): Promise<void> {
	if (!path.startsWith('/sub/lists/{list_id}/subscribers/')) return;
	const ids = readIds({ list_id: values['list_id'] ?? '' })?.ids;
	if (ids?.['list_id'] === undefined) throw notFound();
	await api.lists.get(ids['list_id']);
}
