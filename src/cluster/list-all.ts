import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import { ApiError } from './api-error.ts';
import type { Cluster, ListOptions, ObjectList } from './cluster.ts';

/** Objects of a page: what API servers' own clients ask for, some 2.5 MB of pods. */
export const PAGE_SIZE = 500;
/** Times that a list is started over because its next page had expired; then all is asked for in one piece. */
const MAX_RESTARTS = 2;

/** All objects, page by page, and the version that the pages together show. */
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
      // Pages are kept for some minutes only; those that came cannot be completed.
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
  options: ListOptions,
): Promise<ObjectList<T>> {
  let page = await cluster.list(type, options);
  const items = [...page.items];
  // The version belongs to the first page: the others are of the same moment.
  const { resourceVersionMatch: _match, resourceVersion: _version, ...following } = options;
  while (page.metadata.continue !== undefined) {
    page = await cluster.list(type, { ...following, continue: page.metadata.continue });
    for (const item of page.items) {
      items.push(item);
    }
  }
  return { metadata: { resourceVersion: page.metadata.resourceVersion }, items };
}
