// Deletes the objects of a ConfigurationPolicy by its `pruneObjectBehavior`.
import { ApiError, type Cluster, unlessGone } from '../../cluster/index.ts';
import type { ConfigurationPolicy, ObjectKey, RelatedObject, ResourceType } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { CONDENSED_NAME, relatedKey } from '../configuration/index.ts';
import type { KindMappings } from '../objects/kind-mappings.ts';

export interface PruningOptions {
  /** The cluster as the governance account. */
  readonly governed: Cluster;
  readonly mappings: KindMappings;
}

/** What became of the objects to prune. */
export interface PruneResult {
  /** Deleted, or gone already. */
  readonly deleted: readonly RelatedObject[];
  /** Being deleted: a finalizer holds them. */
  readonly terminating: readonly RelatedObject[];
  readonly failures: readonly { readonly object: RelatedObject; readonly message: string }[];
}

/** Whether a policy deletes objects: only an enforced one does. */
export function prunes({ spec }: ConfigurationPolicy): boolean {
  return spec.pruneObjectBehavior !== 'None' && spec.remediationAction.toLowerCase() === 'enforce';
}

/** The related objects that left a policy, and that it may delete. */
export function leftObjects(
  policy: ConfigurationPolicy,
  before: readonly RelatedObject[],
  after: readonly RelatedObject[],
): readonly RelatedObject[] {
  const kept = new Set(after.map((object) => relatedKey(object as Parameters<typeof relatedKey>[0])));
  return before.filter(
    (object) => !kept.has(relatedKey(object as Parameters<typeof relatedKey>[0])) && mayPrune(policy, object),
  );
}

/** Whether the policy may delete an object: with `DeleteIfCreated` only one that it created itself. */
export function mayPrune(policy: ConfigurationPolicy, { object, properties }: RelatedObject): boolean {
  const name = object?.metadata?.name ?? '';
  if (!prunes(policy) || name === '' || name === CONDENSED_NAME) {
    return false;
  }
  return (
    policy.spec.pruneObjectBehavior === 'DeleteAll' ||
    (properties?.createdByPolicy === true && (properties.uid ?? '') !== '')
  );
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
    const failures: { readonly object: RelatedObject; readonly message: string }[] = [];
    for (const object of objects) {
      try {
        const isGone = await this.#delete(policy, object, signal);
        (isGone ? deleted : terminating).push(object);
      } catch (error) {
        if (!(error instanceof ApiError)) {
          throw error;
        }
        failures.push({ object, message: errorText(error) });
      }
    }
    return { deleted, terminating, failures };
  }

  /** @returns whether the object is gone */
  async #delete(policy: ConfigurationPolicy, related: RelatedObject, signal: AbortSignal): Promise<boolean> {
    const { governed, mappings } = this.#options;
    const { apiVersion = '', kind = '', metadata = {} } = related.object ?? {};
    const type = await mappings.find(apiVersion, kind, signal);
    // With its kind, the object is gone.
    if (type === undefined) {
      return true;
    }
    const key = keyIn(type, metadata);
    const found = await unlessGone(governed.get(type, key, { signal }));
    if (found === undefined) {
      return true;
    }
    const { uid = '' } = found.metadata;
    // An object of the same name that somebody else created later stays.
    if (policy.spec.pruneObjectBehavior === 'DeleteIfCreated' && uid !== related.properties?.uid) {
      return true;
    }
    if (found.metadata.deletionTimestamp !== undefined) {
      return false;
    }
    return (await unlessGone(governed.delete(type, key, { preconditions: { uid }, signal }))) === undefined;
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
