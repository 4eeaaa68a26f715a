import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import type { Cluster, ListOptions, ObjectList } from './cluster.ts';

/**
 * The pages of a list, each when it is asked for.
 * @throws ApiError 410 when the next page is gone: servers keep lists for some minutes
 */
export async function* listPages<T extends KubernetesObject>(
  cluster: Pick<Cluster, 'list'>,
  type: ResourceType<T>,
  options: ListOptions & { readonly limit: number },
): AsyncGenerator<ObjectList<T>> {
  // Only the first request names a version: the continue token contains it for the others.
  const { resourceVersionMatch: _match, resourceVersion: _version, ...following } = options;
  let page = await cluster.list(type, options);
  yield page;
  while (page.metadata.continue !== undefined && page.metadata.continue !== '') {
    page = await cluster.list(type, { ...following, continue: page.metadata.continue });
    yield page;
  }
}
