// What replicas do in a small world: read what they were told, load, change over.
import type { Move, Replica, World } from './rollout-world.ts';

/** A replica reads the next thing that it was told, or ends a load. */
export function replicaMoves(world: World, index: number): Move[] {
  const replica = world.replicas[index];
  if (replica === undefined) {
    return [];
  }
  const { name, coming, loaded } = replica;
  const put = (next: Replica): World => ({ ...world, replicas: world.replicas.with(index, swapped(next)) });
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

/** What a replica is to load and has not, nor tried in vain. */
export function unloaded({ sees, loaded, failed }: Replica): number[] {
  const wanted = [...new Set([...sees.staged, sees.serving])];
  return wanted.filter((n) => n !== 0 && !loaded.includes(n) && !failed.includes(n));
}

/** What it is told to serve it serves once it is loaded; what it has no use for it lets go. */
export function swapped(replica: Replica): Replica {
  const { sees, loaded, failed } = replica;
  const isThere = sees.serving !== 0 && loaded.includes(sees.serving);
  const serves = isThere ? sees.serving : sees.failed ? 0 : replica.serves;
  const order = isThere ? sees.order : serves === 0 ? 0 : replica.order;
  const used = new Set([...sees.staged, sees.serving, serves]);
  const keep = (list: readonly number[]): number[] => list.filter((n) => used.has(n)).toSorted((a, b) => a - b);
  return { ...replica, serves, order, loaded: keep(loaded), failed: keep(failed) };
}
