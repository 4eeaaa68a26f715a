import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type Cluster, isNotFound, type ObjectList } from '../../cluster/index.ts';
import type { KubernetesObject, ObjectKey, ResourceType } from '../../resources/index.ts';

/** Delay between watches: some proxies end each at once. Milliseconds. */
const PAUSE_MS = 200;
/** Polling interval for users who may not watch. Milliseconds. */
const LOOK_MS = 1_000;

/** Whether an object, or its absence, meets the goal. */
export type WaitGoal = (object: KubernetesObject | undefined) => boolean;

/**
 * Resolves with the object as soon as the goal holds. A watch that ends is restarted; for users who may only get the object
 * it is polled.
 * @throws the reason of the signal; ApiError when reading the object is forbidden
 */
export async function waitFor(
  cluster: Cluster,
  type: ResourceType,
  key: ObjectKey,
  goal: WaitGoal,
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
      // The connection broke: the next list has the changes.
      signal.throwIfAborted();
    }
    await sleep(PAUSE_MS, undefined, { signal });
  }
}

/** The list before a watch; undefined when listing is forbidden. */
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

/** Resolves when the object is gone or replaced. @param known its uid. Default: that of the current object */
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
