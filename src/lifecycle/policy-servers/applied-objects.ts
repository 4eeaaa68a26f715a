// Applies and removes the objects of PolicyServers.
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  CONTROLLER_FIELD_MANAGER,
  type JsonObject,
  keyOf,
  keyText,
  type KubernetesObject,
  knownKind,
  type ObjectKey,
  POLICY_SERVER_LABEL,
  type ResourceType,
  labelsText,
} from '../../resources/index.ts';
import {
  anyOf,
  generationChanged,
  type ObjectCache,
  type SharedCaches,
  type Watch,
  watch,
  WrittenObjects,
} from '../../runtime/index.ts';
import { hasDigestOf, isAsApplied, ownFields, withAppliedDigest, withOwnFieldsOnly } from './applied-object.ts';
import { type Deployment, deploymentsOf } from './ownership.ts';
import { deploymentFailure, rolloutProgress } from './deployment-failure.ts';
import { isObjectOf, POLICY_SERVER_OBJECT_LABELS } from '../certificates/policy-server-names.ts';
import { OBJECT_KINDS, type ObjectKind } from './object-kinds.ts';

/** Another user or product created an object of the same name. */
export class NameTaken extends Error {
  override readonly name = 'NameTaken';
}

interface Kind {
  readonly type: ResourceType;
  readonly cache: ObjectCache;
  readonly objects: WrittenObjects;
  /** Objects by their PolicyServer. */
  readonly of: (policyServer: string) => readonly KubernetesObject[];
  /** By key: our fields in the cluster, where its field set differs from the one we compute. */
  readonly accepted: Map<string, string>;
}

export interface AppliedObjectsOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** Namespace of Portcullis. */
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
        const type = knownKind(apiVersion, kind);
        const scope = type.namespaced ? { namespace } : {};
        const cache =
          kind === 'Deployment'
            ? deploymentsOf(caches, namespace)
            : caches.cache(type, { ...scope, labelSelector, transform: withOwnFieldsOnly });
        const index = cache.index(serversOf);
        const of = (policyServer: string): readonly KubernetesObject[] => index.get(policyServer);
        return [kind, { type, cache, objects: new WrittenObjects(cache), of, accepted: new Map<string, string>() }];
      }),
    );
  }

  /** Changes of our fields, and of the rollout of Deployments, by PolicyServer. */
  watches(): readonly Watch[] {
    return [...this.#kinds].map(([kind, { cache }]) =>
      watch(cache, {
        keys: (object) => serversOf(object).map((name) => ({ name })),
        when: [
          anyOf(
            generationChanged,
            ownFieldsChanged,
            ({ before, after }) => kind === 'Deployment' && rolloutChanged(before, after),
          ),
        ],
      }),
    );
  }

  /** A Deployment in its current state. */
  deployment(key: ObjectKey): Deployment | undefined {
    return this.#kindOf('Deployment').objects.get(key);
  }

  /** Whether a PolicyServer has any objects. */
  hasAny(policyServer: string): boolean {
    return [...this.#kinds.values()].some(({ of }) => of(policyServer).length > 0);
  }

  /**
   * Applies an object if it differs. Returns whether it was written. With `dryRun`, nothing is stored.
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
    const body = withAppliedDigest(wanted);
    const key = keyOf(wanted as KubernetesObject);
    const known = own.objects.get(key);
    if (known !== undefined && !dryRun && (isAsApplied(known, body) || isAccepted(own, known, body))) {
      return false;
    }
    // Caches select by label; an object that lost its labels is in none.
    const actual = known ?? (await unlessGone(this.#cluster.get(own.type, key, { signal })));
    if (actual !== undefined && !isObjectOf(actual, policyServer) && ownFields(actual) === undefined) {
      const name = key.namespace === undefined ? key.name : `${key.namespace}/${key.name}`;
      throw new NameTaken(
        `${kind} ${name} was created by another user or product: rename or remove it, or run Portcullis in another namespace`,
      );
    }
    const options = { fieldManager: CONTROLLER_FIELD_MANAGER, signal, ...(dryRun ? { dryRun } : {}) };
    const applied = await this.#cluster.patch(own.type, key, { type: 'apply', body, force: true }, options);
    if (!dryRun) {
      own.objects.recordWrite(key, withOwnFieldsOnly(applied));
      if (isAsApplied(applied, body)) {
        own.accepted.delete(keyText(key));
      } else {
        own.accepted.set(keyText(key), fieldsText(applied));
      }
    }
    return true;
  }

  /** Removes the objects of a kind of a PolicyServer. Returns whether there were any. @throws ApiError, ClusterError */
  async remove(kind: ObjectKind, policyServer: string, signal: AbortSignal): Promise<boolean> {
    const own = this.#kindOf(kind);
    let isRemoved = false;
    for (const cached of own.of(policyServer)) {
      const key = keyOf(cached);
      const object = own.objects.get(key);
      own.accepted.delete(keyText(key));
      if (object !== undefined && object.metadata.deletionTimestamp === undefined && isObjectOf(object, policyServer)) {
        const { uid } = object.metadata;
        const options = { signal, ...(uid === undefined ? {} : { preconditions: { uid } }) };
        await unlessGone(this.#cluster.delete(own.type, key, options));
        own.objects.recordWrite(key, undefined);
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

/** The PolicyServer of an object. */
function serversOf({ metadata }: KubernetesObject): readonly string[] {
  const name = metadata.labels?.[POLICY_SERVER_LABEL];
  return name !== undefined && isObjectOf({ metadata }, name) ? [name] : [];
}

function isAccepted({ accepted }: Kind, actual: KubernetesObject, wanted: JsonObject): boolean {
  return hasDigestOf(actual, wanted) && accepted.get(keyText(keyOf(actual))) === fieldsText(actual);
}

function fieldsText(object: KubernetesObject): string {
  return JSON.stringify(ownFields(object) ?? null);
}

/** Whether our fields in an object changed: another writer has changed it. */
function ownFieldsChanged({
  before,
  after,
}: {
  before: KubernetesObject | undefined;
  after: KubernetesObject | undefined;
}): boolean {
  return before === undefined || after === undefined || fieldsText(before) !== fieldsText(after);
}

function rolloutChanged(before: KubernetesObject | undefined, after: KubernetesObject | undefined): boolean {
  const text = (object: KubernetesObject | undefined): string =>
    JSON.stringify(object === undefined ? null : [deploymentFailure(object), rolloutProgress(object)]);
  return text(before) !== text(after);
}
