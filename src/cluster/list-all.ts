import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import { ApiError } from './api-error.ts';
import type { Cluster, ListOptions, ObjectList } from './cluster.ts';
import { listPages } from './list-pages.ts';

/** Objects per page, as in client-go: some 2.5 MB of pods. */
export const PAGE_SIZE = 500;
/** Restarts of a list whose next page expired; after these, one request without pages. */
const MAX_RESTARTS = 2;

/** All objects, page by page, and the version of all pages. */
export async function listAll<T extends KubernetesObject>(
  cluster: Pick<Cluster, 'list'>,
  type: ResourceType<T>,
  options: Omit<ListOptions, 'continue'> = {},
): Promise<ObjectList<T>> {
  const { limit = PAGE_SIZE, ...rest } = options;
  for (let restarts = 0; restarts < MAX_RESTARTS; restarts += 1) {
    try {
      return await allPages(cluster, type, { ...rest, limit });
    } catch (error) {
      // Servers keep the later pages for a few minutes only.
      if (!(error instanceof ApiError && error.code === 410)) {
        throw error;
      }
    }
  }
  return await cluster.list(type, rest);
}

async function allPages<T extends KubernetesObject>(
  cluster: Pick<Cluster, 'list'>,
  type: ResourceType<T>,
  options: ListOptions & { readonly limit: number },
): Promise<ObjectList<T>> {
  const items: T[] = [];
  let resourceVersion = '';
  for await (const page of listPages(cluster, type, options)) {
    ({ resourceVersion } = page.metadata);
    for (const item of page.items) {
      items.push(item);
    }
  }
  return { metadata: { resourceVersion }, items };
}
