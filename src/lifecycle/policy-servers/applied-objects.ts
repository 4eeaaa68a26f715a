// The objects of PolicyServers in a cluster: applied when they differ, and removed.
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  type JsonObject,
  keyOf,
  keyText,
  type KubernetesObject,
  kubernetesKind,
  type ObjectKey,
  POLICY_SERVER_LABEL,
  type ResourceType,
} from '../../resources/index.ts';
import {
  anyOf,
  generationChanged,
  type ObjectCache,
  type SharedCaches,
  type Watch,
  watch,
} from '../../runtime/index.ts';
import { labelsText } from '../managed-by.ts';
import { FIELD_MANAGER } from '../field-manager.ts';
import { WrittenObjects } from '../written-objects.ts';
import { hasDigestOf, isAsApplied, ownFields, withDigest, withOwnFieldsOnly } from './applied-object.ts';
import { type Deployment, deploymentsOf } from './ownership.ts';
import { deploymentTrouble, rolloutProgress } from './deployment-trouble.ts';
import { isObjectOf, POLICY_SERVER_OBJECT_LABELS } from './policy-server-names.ts';
import { OBJECT_KINDS, type ObjectKind } from './policy-server-objects.ts';

/** An object that somebody else made has the name of one that is to be there. */
export class NameTaken extends Error {
  override readonly name = 'NameTaken';
}

interface Kind {
  readonly type: ResourceType;
  readonly cache: ObjectCache;
  readonly objects: WrittenObjects;
  /** Objects by the PolicyServer that they are of. */
  readonly of: (policyServer: string) => readonly KubernetesObject[];
  /** By key: the fields that a cluster says we own, where it counts them in another way than we do. */
  readonly taken: Map<string, string>;
}

export interface AppliedObjectsOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** Of the product. */
  readonly namespace: string;
}

export class AppliedObjects {
  readonly #cluster: Cluster;
  readonly #kinds: ReadonlyMap<ObjectKind, Kind>;

  constructor({ cluster, caches, namespace }: AppliedObjectsOptions) {
    this.#cluster = cluster;
    const labelSelector = labelsText(POLICY_SERVER_OBJECT_LABELS);
    this.#kinds = new Map(
      OBJECT_KINDS.map(({ apiVersion, kind }) => {
        const type = kubernetesKind(apiVersion, kind);
        if (type === undefined) {
          throw new Error(`${kind} of ${apiVersion} is not among the builtin kinds`);
        }
        const scope = type.namespaced ? { namespace } : {};
        const cache =
          kind === 'Deployment'
            ? deploymentsOf(caches, namespace)
            : caches.cache(type, { ...scope, labelSelector, transform: withOwnFieldsOnly });
        const index = cache.index(serversOf);
        const of = (policyServer: string): readonly KubernetesObject[] => index.get(policyServer);
        return [kind, { type, cache, objects: new WrittenObjects(cache), of, taken: new Map<string, string>() }];
      }),
    );
  }

  /** Changes of what we own in the objects, and of how the Deployment fares, by PolicyServer. */
  watches(): readonly Watch[] {
    return [...this.#kinds].map(([kind, { cache }]) =>
      watch(cache, {
        keys: (object) => serversOf(object).map((name) => ({ name })),
        when: [
          anyOf(
            generationChanged,
            isTouched,
            ({ before, after }) => kind === 'Deployment' && faresOtherwise(before, after),
          ),
        ],
      }),
    );
  }

  /** What the Deployment of a PolicyServer complains of. */
  deployment(key: ObjectKey): Deployment | undefined {
    return this.#kindOf('Deployment').objects.get(key);
  }

  /** Whether there is anything of a PolicyServer. */
  hasAny(policyServer: string): boolean {
    return [...this.#kinds.values()].some(({ of }) => of(policyServer).length > 0);
  }

  /**
   * Makes an object as it is to be, if it is not. Whether it had to be written. `dryRun`: whether that could be done; nothing
   * is stored.
   * @throws NameTaken, ApiError, ClusterError
   */
  async apply(
    kind: ObjectKind,
    policyServer: string,
    wanted: JsonObject,
    signal: AbortSignal,
    { dryRun = false }: { readonly dryRun?: boolean } = {},
  ): Promise<boolean> {
    const own = this.#kindOf(kind);
    const body = withDigest(wanted);
    const key = keyOf(wanted as KubernetesObject);
    const known = own.objects.get(key);
    if (known !== undefined && !dryRun && (isAsApplied(known, body) || isTaken(own, known, body))) {
      return false;
    }
    // What lost its labels is in no cache.
    const actual = known ?? (await unlessGone(this.#cluster.get(own.type, key, { signal })));
    if (actual !== undefined && !isObjectOf(actual, policyServer) && ownFields(actual) === undefined) {
      const place = key.namespace === undefined ? key.name : `${key.namespace}/${key.name}`;
      throw new NameTaken(
        `${kind} ${place} was made by somebody else: rename or remove it, or run Portcullis in a namespace of its own`,
      );
    }
    const options = { fieldManager: FIELD_MANAGER, signal, ...(dryRun ? { dryRun } : {}) };
    const made = await this.#cluster.patch(own.type, key, { type: 'apply', body, force: true }, options);
    if (!dryRun) {
      own.objects.wrote(key, withOwnFieldsOnly(made));
      if (isAsApplied(made, body)) {
        own.taken.delete(keyText(key));
      } else {
        own.taken.set(keyText(key), fieldsText(made));
      }
    }
    return true;
  }

  /** Removes all objects of a kind that a PolicyServer has. Whether there was one. @throws ApiError, ClusterError */
  async remove(kind: ObjectKind, policyServer: string, signal: AbortSignal): Promise<boolean> {
    const own = this.#kindOf(kind);
    let isRemoved = false;
    for (const cached of own.of(policyServer)) {
      const key = keyOf(cached);
      const object = own.objects.get(key);
      own.taken.delete(keyText(key));
      if (object !== undefined && object.metadata.deletionTimestamp === undefined && isObjectOf(object, policyServer)) {
        const { uid } = object.metadata;
        const options = { signal, ...(uid === undefined ? {} : { preconditions: { uid } }) };
        await unlessGone(this.#cluster.delete(own.type, key, options));
        own.objects.wrote(key, undefined);
        isRemoved = true;
      }
    }
    return isRemoved;
  }

  #kindOf(kind: ObjectKind): Kind {
    const own = this.#kinds.get(kind);
    if (own === undefined) {
      throw new Error(`${kind} is not among the kinds of objects of PolicyServers`);
    }
    return own;
  }
}

/** The PolicyServer that an object was made for. */
function serversOf({ metadata }: KubernetesObject): readonly string[] {
  const name = metadata.labels?.[POLICY_SERVER_LABEL];
  return name !== undefined && isObjectOf({ metadata }, name) ? [name] : [];
}

function isTaken({ taken }: Kind, actual: KubernetesObject, wanted: JsonObject): boolean {
  return hasDigestOf(actual, wanted) && taken.get(keyText(keyOf(actual))) === fieldsText(actual);
}

function fieldsText(object: KubernetesObject): string {
  return JSON.stringify(ownFields(object) ?? null);
}

/** Whether what we own of an object is another part of it now: somebody has changed it. */
function isTouched({
  before,
  after,
}: {
  before: KubernetesObject | undefined;
  after: KubernetesObject | undefined;
}): boolean {
  return before === undefined || after === undefined || fieldsText(before) !== fieldsText(after);
}

function faresOtherwise(before: KubernetesObject | undefined, after: KubernetesObject | undefined): boolean {
  const text = (object: KubernetesObject | undefined): string =>
    JSON.stringify(object === undefined ? null : [deploymentTrouble(object), rolloutProgress(object)]);
  return text(before) !== text(after);
}
