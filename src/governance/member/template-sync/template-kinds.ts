// Where the objects of policy templates are read and written: our own kinds by the controller, others by the governance account.
import type { Cluster } from '../../../cluster/index.ts';
import {
  CERTIFICATE_POLICIES,
  CONFIGURATION_POLICIES,
  GOVERNANCE_LABELS,
  groupVersionOf,
  type KubernetesObject,
  type ObjectKey,
  type Policy,
  type ResourceType,
} from '../../../resources/index.ts';
import { ObjectSchema } from '../../../resources/validation/index.ts';
import { type ObjectCache, WrittenObjects } from '../../../runtime/index.ts';
import type { KindMappings } from '../../objects/kind-mappings.ts';
import type { ObjectReader } from '../../objects/watched-kinds.ts';
import { POLICY_ANNOTATION } from './template-object.ts';

/** Groups of Gatekeeper, whose kinds are templates although their definitions do not say so. */
const GATEKEEPER_GROUPS: ReadonlySet<string> = new Set(['constraints.gatekeeper.sh', 'templates.gatekeeper.sh']);

const OWN_KINDS = [CONFIGURATION_POLICIES, CERTIFICATE_POLICIES] as const;

/** Objects of one kind of templates. */
export interface TemplateKind {
  readonly type: ResourceType;
  /** Whether objects of the kind may be templates. */
  readonly isAllowed: boolean;
  /** Whether its objects are read through the reader of governed objects. */
  readonly isWatchedHere: boolean;
  /** The account that reads and writes them. */
  readonly cluster: Cluster;
  get(key: ObjectKey): KubernetesObject | undefined;
  /** The objects that were applied for a copy. */
  appliedBy(copy: Policy): readonly KubernetesObject[];
  /** Adds the defaults of the kind; absent if they are unknown. */
  readonly withDefaults?: (object: KubernetesObject) => KubernetesObject;
  /** Records a write, which {@link get} then returns. */
  recordWrite(key: ObjectKey, object: KubernetesObject | undefined): void;
}

export interface TemplateKindsOptions {
  readonly cluster: Cluster;
  /** The cluster as the governance account sees it. */
  readonly governed: Cluster;
  readonly mappings: KindMappings;
  readonly reader: ObjectReader;
  /** The caches of our own kinds. */
  readonly own: readonly ObjectCache[];
}

/** Finds the kinds of templates. */
export class TemplateKinds {
  readonly #options: TemplateKindsOptions;
  /** Our own kinds by name. */
  readonly #own: ReadonlyMap<string, TemplateKind>;

  constructor(options: TemplateKindsOptions) {
    this.#options = options;
    this.#own = new Map(options.own.map((cache) => [cache.type.kind, ownTemplateKind(cache, options.cluster)]));
  }

  /** The kinds of templates that this controller reconciles itself. */
  get own(): Iterable<TemplateKind> {
    return this.#own.values();
  }

  /** The kind of an object; undefined when the cluster does not serve it. @throws ApiError, ClusterError */
  async find(apiVersion: string, kind: string, signal: AbortSignal): Promise<TemplateKind | undefined> {
    const type = await this.#options.mappings.find(apiVersion, kind, signal);
    if (type === undefined) {
      return undefined;
    }
    const own = isOwnKind(type) ? this.#own.get(kind) : undefined;
    return own ?? (await this.#foreign(type, apiVersion, signal));
  }

  async #foreign(type: ResourceType, apiVersion: string, signal: AbortSignal): Promise<TemplateKind> {
    const { mappings, reader, governed } = this.#options;
    const labels = mappings.labelsOf(apiVersion, type.kind) ?? {};
    const isAllowed =
      labels[GOVERNANCE_LABELS.policyType] === 'template' || GATEKEEPER_GROUPS.has(groupVersionOf(apiVersion).group);
    if (!isAllowed) {
      return {
        type,
        isAllowed,
        isWatchedHere: false,
        cluster: governed,
        get: () => undefined,
        appliedBy: () => [],
        recordWrite: () => undefined,
      };
    }
    const objects = await reader.open(type, signal);
    return {
      type,
      isAllowed,
      isWatchedHere: true,
      cluster: governed,
      get: (key) => objects.get(key),
      appliedBy: (copy) => objects.list().filter((object) => isAppliedBy(object, copy, type)),
      recordWrite: () => undefined,
    };
  }
}

function ownTemplateKind(cache: ObjectCache, cluster: Cluster): TemplateKind {
  const written = new WrittenObjects(cache);
  const kind = OWN_KINDS.find((one) => one.kind === cache.type.kind);
  return {
    type: cache.type,
    isAllowed: true,
    isWatchedHere: false,
    cluster,
    get: (key) => written.get(key),
    appliedBy: ({ metadata }) => cache.ownedBy(metadata.uid ?? ''),
    ...(kind === undefined ? {} : { withDefaults: defaulting(kind) }),
    recordWrite: (key, object) => written.recordWrite(key, object),
  };
}

function defaulting(kind: (typeof OWN_KINDS)[number]): (object: KubernetesObject) => KubernetesObject {
  const schema = new ObjectSchema(kind.schema());
  return (object) => {
    const copy = structuredClone(object);
    schema.applyDefaults(copy as Parameters<typeof schema.applyDefaults>[0]);
    return copy;
  };
}

function isAppliedBy({ metadata }: KubernetesObject, copy: Policy, { namespaced }: ResourceType): boolean {
  return namespaced
    ? (metadata.ownerReferences ?? []).some(({ uid }) => uid === copy.metadata.uid)
    : metadata.annotations?.[POLICY_ANNOTATION] === copy.metadata.name;
}

/** Whether a kind is one that this controller reconciles. */
function isOwnKind({ group, kind }: ResourceType): boolean {
  return OWN_KINDS.some((own) => own.group === group && own.kind === kind);
}
