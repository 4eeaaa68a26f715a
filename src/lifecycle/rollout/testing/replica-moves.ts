// The moves of replicas: reading changes of revisions, loading, switching.
import type { Move, Replica, World } from './rollout-world.ts';

/** A replica reads the next change, or finishes a load. */
export function replicaMoves(world: World, index: number): Move[] {
  const replica = world.replicas[index];
  if (replica === undefined) {
    return [];
  }
  const { name, coming, loaded } = replica;
  const put = (next: Replica): World => ({ ...world, replicas: world.replicas.with(index, switchedReplica(next)) });
  const [next, ...rest] = coming;
  const read =
    next === undefined
      ? []
      : [{ name: `${name} reads ${JSON.stringify(next)}`, world: put({ ...replica, sees: next, coming: rest }) }];
  const loads = unloaded(replica).map((n) => ({
    name: `${name} loads ${n}`,
    world: put({ ...replica, loaded: [...loaded, n] }),
  }));
  return [...read, ...loads];
}

/** Revisions that a replica should load, has not loaded, and has not failed to load. */
export function unloaded({ sees, loaded, failed }: Replica): number[] {
  const wanted = [...new Set([...sees.staged, sees.serving])];
  return wanted.filter((n) => n !== 0 && !loaded.includes(n) && !failed.includes(n));
}

/** Switches to the wanted revision if it is loaded, and drops unused ones. */
export function switchedReplica(replica: Replica): Replica {
  const { sees, loaded, failed } = replica;
  const isThere = sees.serving !== 0 && loaded.includes(sees.serving);
  const serves = isThere ? sees.serving : sees.failed ? 0 : replica.serves;
  const order = isThere ? sees.order : serves === 0 ? 0 : replica.order;
  const used = new Set([...sees.staged, sees.serving, serves]);
  const keep = (list: readonly number[]): number[] => list.filter((n) => used.has(n)).toSorted((a, b) => a - b);
  return { ...replica, serves, order, loaded: keep(loaded), failed: keep(failed) };
}
