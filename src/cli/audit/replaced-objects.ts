import type { Cluster } from '../../cluster/index.ts';
import type { JsonObject, ObjectReference } from '../../engine/index.ts';
import type { FindResult, WatchedChange } from '../../evaluation/index.ts';
import { unlessGone } from '../../cluster/index.ts';
import { asJson, errorText } from '../../values/index.ts';
import { ParameterObjects } from '../policy/parameter-objects.ts';

/** Objects that are looked up: given ones, and those of a cluster that are not among these. Each is read once. */
export class ReplacedObjects {
  readonly #given: ParameterObjects;
  readonly #cluster: Pick<Cluster, 'get' | 'discovery'> | undefined;
  readonly #found = new Map<string, Promise<FindResult>>();

  /** @param cluster absent: there are no other objects */
  constructor(given: readonly JsonObject[], cluster?: Pick<Cluster, 'get' | 'discovery'>) {
    this.#given = new ParameterObjects(given);
    this.#cluster = cluster;
  }

  /** Publishes an object to workers, for the option `find` of an evaluation host. Never rejects. */
  async publish(reference: ObjectReference, publishWatched: (change: WatchedChange) => void): Promise<FindResult> {
    const given = this.#given.publish(reference, publishWatched);
    const cluster = this.#cluster;
    if (given.state !== 'absent' || cluster === undefined) {
      return given;
    }
    const key = JSON.stringify(reference);
    const found = this.#found.get(key) ?? publishFrom(cluster, reference, publishWatched);
    this.#found.set(key, found);
    return await found;
  }
}

async function publishFrom(
  cluster: Pick<Cluster, 'get' | 'discovery'>,
  reference: ObjectReference,
  publishWatched: (change: WatchedChange) => void,
): Promise<FindResult> {
  const { apiVersion, kind, namespace, name } = reference;
  try {
    const type = await cluster.discovery.find(apiVersion, kind);
    if (type === undefined) {
      return { state: 'unreadable', reason: `the cluster does not serve ${kind} of ${apiVersion}` };
    }
    const object = await unlessGone(cluster.get(type, namespace === undefined ? { name } : { namespace, name }));
    return object === undefined
      ? { state: 'absent' }
      : new ParameterObjects([asJson({ ...object, apiVersion, kind })]).publish(reference, publishWatched);
  } catch (error) {
    return { state: 'unreadable', reason: errorText(error) };
  }
}
