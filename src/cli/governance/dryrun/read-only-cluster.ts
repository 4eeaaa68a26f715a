// A cluster that a dry run reads, and in which it may only try writes.
import { ApiError, type Cluster, isForbidden } from '../../../cluster/index.ts';
import { groupResourceOf } from '../../../resources/index.ts';
import { aborted } from '../../../runtime/index.ts';

const DEFINITIONS = groupResourceOf({ group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' });

/**
 * Writes are refused, unless the server is asked to store nothing. Few users may list CustomResourceDefinitions, which only
 * save requests of discovery: without the right there are none.
 */
export function readOnly(cluster: Cluster): Cluster {
  return {
    discovery: cluster.discovery,
    get: (type, key, options) => cluster.get(type, key, options),
    list: async (type, options) => {
      try {
        return await cluster.list(type, options);
      } catch (error) {
        if (isForbidden(error) && groupResourceOf(type) === DEFINITIONS) {
          return { metadata: { resourceVersion: UNREADABLE }, items: [] };
        }
        throw error;
      }
    },
    watch: (type, options) =>
      groupResourceOf(type) === DEFINITIONS && options?.resourceVersion === UNREADABLE
        ? never(options.signal)
        : cluster.watch(type, options),
    create: (type, object, options) =>
      options?.dryRun === true ? cluster.create(type, object, options) : refuse('create'),
    update: (type, object, options) =>
      options?.dryRun === true ? cluster.update(type, object, options) : refuse('update'),
    patch: (type, key, patch, options) =>
      options?.dryRun === true ? cluster.patch(type, key, patch, options) : refuse('patch'),
    delete: () => refuse('delete'),
    deleteCollection: () => refuse('delete'),
  };
}

/** The version of a list that the user may not read. */
const UNREADABLE = 'unreadable';

/** A watch without events. */
async function* never(signal: AbortSignal | undefined): AsyncGenerator<never> {
  await aborted(signal ?? new AbortController().signal);
  yield* [];
}

function refuse(verb: string): Promise<never> {
  return Promise.reject(new ApiError(405, 'MethodNotAllowed', `a dry run does not ${verb} objects of a cluster`));
}
