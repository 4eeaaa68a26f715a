// Waiting for objects to become something.
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type Cluster, isNotFound, type ObjectList } from '../../cluster/index.ts';
import type { KubernetesObject, ObjectKey, ResourceType } from '../../resources/index.ts';

/** Between two watches: some proxies end them at once. Milliseconds. */
const PAUSE_MS = 200;
/** Between two looks of somebody who may not watch. Milliseconds. */
const LOOK_MS = 1_000;

/** What is waited for: whether an object, or its absence, is it. */
export type Goal = (object: KubernetesObject | undefined) => boolean;

/**
 * Resolves with the object as soon as the goal holds. A watch that ends or breaks is begun anew; who may only get the object
 * looks at it again and again.
 * @throws what aborted the signal; ApiError when the object may not be read
 */
export async function waitFor(
  cluster: Cluster,
  type: ResourceType,
  key: ObjectKey,
  goal: Goal,
  signal: AbortSignal,
): Promise<KubernetesObject | undefined> {
  for (;;) {
    signal.throwIfAborted();
    const now = await listed(cluster, type, key, signal);
    const found = now === undefined ? await gotten(cluster, type, key, signal) : now.items[0];
    if (goal(found)) {
      return found;
    }
    if (now === undefined) {
      await sleep(LOOK_MS, undefined, { signal });
      continue;
    }
    const { resourceVersion } = now.metadata;
    try {
      const watch = cluster.watch(type, { ...selection(key), resourceVersion, signal });
      for await (const { type: change, object } of watch) {
        const now = change === 'DELETED' ? undefined : object;
        if (change !== 'BOOKMARK' && goal(now)) {
          return now;
        }
      }
    } catch (error) {
      if (error instanceof ApiError && error.code !== 410) {
        throw error;
      }
      // A connection that broke: what has happened meanwhile is in the next list.
      signal.throwIfAborted();
    }
    await sleep(PAUSE_MS, undefined, { signal });
  }
}

/** What a watch begins with; undefined for who may not list. */
async function listed(
  cluster: Cluster,
  type: ResourceType,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<ObjectList | undefined> {
  try {
    return await cluster.list(type, { ...selection(key), signal });
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) {
      return undefined;
    }
    throw error;
  }
}

async function gotten(
  cluster: Cluster,
  type: ResourceType,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<KubernetesObject | undefined> {
  try {
    return await cluster.get(type, key, { signal });
  } catch (error) {
    if (isNotFound(error)) {
      return undefined;
    }
    throw error;
  }
}

/** Resolves when there is no such object, or another one has its name. `known`: its uid; default: that of the one that is there. */
export async function waitUntilGone(
  cluster: Cluster,
  type: ResourceType,
  key: ObjectKey,
  signal: AbortSignal,
  known?: string,
): Promise<void> {
  let uid = known;
  await waitFor(
    cluster,
    type,
    key,
    (object) => {
      uid ??= object?.metadata.uid;
      return object === undefined || object.metadata.uid !== uid;
    },
    signal,
  );
}

function selection({ namespace, name }: ObjectKey): { namespace?: string; fieldSelector: string } {
  return { ...(namespace === undefined ? {} : { namespace }), fieldSelector: `metadata.name=${name}` };
}
