// Deletes the objects of a ConfigurationPolicy by its `pruneObjectBehavior`.
import { ApiError, type Cluster, unlessGone } from '../../../cluster/index.ts';
import {
  type ConfigurationPolicy,
  groupVersionOf,
  type ObjectKey,
  type RelatedObject,
  type ResourceType,
} from '../../../resources/index.ts';
import { errorText } from '../../../values/index.ts';
import { CONDENSED_NAME } from '../../configuration/index.ts';
import type { KindMappings } from '../../objects/kind-mappings.ts';
import type { ReadSelection } from '../../objects/watched-kinds.ts';

export interface PruningOptions {
  /** The cluster as the governance account. */
  readonly governed: Cluster;
  readonly mappings: KindMappings;
}

/** The result of pruning. */
export interface PruneResult {
  /** Deleted, or gone already. */
  readonly deleted: readonly RelatedObject[];
  /** Being deleted, but kept by a finalizer. */
  readonly terminating: readonly RelatedObject[];
  /** The same objects, to be watched until they are gone. */
  readonly awaited: readonly ReadSelection[];
  readonly failures: readonly { readonly object: RelatedObject; readonly message: string }[];
}

/** Whether a policy deletes objects: only an enforced one does. */
export function prunes({ spec }: ConfigurationPolicy): boolean {
  return spec.pruneObjectBehavior !== 'None' && spec.remediationAction.toLowerCase() === 'enforce';
}

/** Related objects that are no longer in the policy, and that it may delete. */
export function droppedObjects(
  policy: ConfigurationPolicy,
  before: readonly RelatedObject[],
  after: readonly RelatedObject[],
): readonly RelatedObject[] {
  const names = new Set(after.map(identityOf));
  const uids = new Set(after.map(({ properties }) => properties?.uid ?? ''));
  return before.filter(
    (object) => !names.has(identityOf(object)) && !isIn(uids, object.properties?.uid) && mayPrune(policy, object),
  );
}

/**
 * Whether the policy may delete an object: with `DeleteIfCreated` only one that it created itself. Objects of `mustnothave`,
 * and those that a template without a name only looks at, have no `createdByPolicy`: they were never the policy's own.
 */
export function mayPrune(policy: ConfigurationPolicy, { object, properties }: RelatedObject): boolean {
  const name = object?.metadata?.name ?? '';
  if (!prunes(policy) || name === '' || name === CONDENSED_NAME || properties?.createdByPolicy === undefined) {
    return false;
  }
  return (
    policy.spec.pruneObjectBehavior === 'DeleteAll' || (properties.createdByPolicy && (properties.uid ?? '') !== '')
  );
}

/** Identifies an object without the version of its group: another version is the same object. */
function identityOf({ object }: RelatedObject): string {
  const { apiVersion = '', kind = '', metadata } = object ?? {};
  return JSON.stringify([groupVersionOf(apiVersion).group, kind, metadata?.namespace ?? '', metadata?.name ?? '']);
}

/** Whether the uid is one of these: an object may be served by two groups. */
function isIn(uids: ReadonlySet<string>, uid = ''): boolean {
  return uid !== '' && uids.has(uid);
}

export class Pruning {
  readonly #options: PruningOptions;

  constructor(options: PruningOptions) {
    this.#options = options;
  }

  /** Deletes objects. @throws ClusterError */
  async delete(
    policy: ConfigurationPolicy,
    objects: readonly RelatedObject[],
    signal: AbortSignal,
  ): Promise<PruneResult> {
    const deleted: RelatedObject[] = [];
    const terminating: RelatedObject[] = [];
    const awaited: ReadSelection[] = [];
    const failures: { readonly object: RelatedObject; readonly message: string }[] = [];
    for (const object of objects) {
      try {
        const left = await this.#delete(policy, object, signal);
        if (left === undefined) {
          deleted.push(object);
        } else {
          terminating.push(object);
          awaited.push(left);
        }
      } catch (error) {
        if (!(error instanceof ApiError)) {
          throw error;
        }
        failures.push({ object, message: errorText(error) });
      }
    }
    return { deleted, terminating, awaited, failures };
  }

  /** @returns the object while a finalizer keeps it; undefined once it is gone */
  async #delete(
    policy: ConfigurationPolicy,
    related: RelatedObject,
    signal: AbortSignal,
  ): Promise<ReadSelection | undefined> {
    const { governed, mappings } = this.#options;
    const { apiVersion = '', kind = '', metadata = {} } = related.object ?? {};
    const type = await mappings.find(apiVersion, kind, signal);
    // With its kind, the object is gone.
    if (type === undefined) {
      return undefined;
    }
    const key = keyIn(type, metadata);
    const found = await unlessGone(governed.get(type, key, { signal }));
    if (found === undefined) {
      return undefined;
    }
    const { uid = '' } = found.metadata;
    // Another object of the same name, created later, stays.
    if (policy.spec.pruneObjectBehavior === 'DeleteIfCreated' && uid !== related.properties?.uid) {
      return undefined;
    }
    const isTerminating = found.metadata.deletionTimestamp !== undefined;
    const left = isTerminating
      ? found
      : await unlessGone(governed.delete(type, key, { preconditions: { uid }, signal }));
    return left === undefined ? undefined : { type, ...key };
  }
}

function keyIn(
  type: ResourceType,
  { namespace = '', name = '' }: { readonly namespace?: string; readonly name?: string },
): ObjectKey {
  return type.namespaced && namespace !== '' ? { namespace, name } : { name };
}

/** `Failed to delete objects: v1, Kind=Pod "x" in namespace y`, as upstream. */
export function pruneFailureText({ failures, terminating }: Pick<PruneResult, 'failures' | 'terminating'>): string {
  const objects = [
    ...failures.map(({ object, message }) => ({ object, message })),
    ...terminating.map((object) => ({ object, message: 'it is being deleted' })),
  ];
  const texts = objects.map(({ object: { object }, message }) => {
    const { namespace, name = '' } = object?.metadata ?? {};
    const place = namespace === undefined ? '' : ` in namespace ${namespace}`;
    return `${object?.apiVersion ?? ''}, Kind=${object?.kind ?? ''} "${name}"${place} (${message})`;
  });
  return `Failed to delete objects: ${texts.join(', ')}`;
}
