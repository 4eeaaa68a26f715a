// Repeats the status of a NetworkPolicy in the NetworkPolicy itself, where that is switched on.
import { type Cluster, unlessGone } from '../cluster/index.ts';
import {
  ANNOTATIONS,
  apiVersionOf,
  type Condition,
  findCondition,
  isJsonObject,
  keyOf,
  type KubernetesObject,
  textOf,
} from '../resources/index.ts';
import { type ObjectCache, type Predicate, WrittenObjects } from '../runtime/index.ts';
import { shortened } from '../values/index.ts';
import { isSame } from './applied-status.ts';
import type { ProjectionOptions } from './settings/projection-options.ts';
import { NETWORK_POLICIES } from './network-policies.ts';
import { ACCEPTED, OUR_CONDITIONS, STATUS_FIELD_MANAGER, type StatusFields } from './status-terms.ts';

/** Characters of the annotation: CNI agents keep all NetworkPolicies in memory. */
const MAX_ANNOTATION = 512;

/** Writes only what differs. Never writes a spec. */
export class PolicyProjection {
  readonly #cluster: Pick<Cluster, 'patch'>;
  readonly #policies: WrittenObjects;
  readonly #options: ProjectionOptions;

  constructor(
    cluster: Pick<Cluster, 'patch'>,
    policies: Pick<ObjectCache, 'get' | 'subscribe'>,
    options: ProjectionOptions,
  ) {
    this.#cluster = cluster;
    this.#policies = new WrittenObjects(policies);
    this.#options = options;
  }

  /** @throws ApiError, ClusterError */
  async write(policy: KubernetesObject, status: StatusFields, signal: AbortSignal): Promise<void> {
    const { annotation = 'none', subresource = false } = this.#options;
    const current = this.#policies.get(keyOf(policy)) ?? policy;
    if (annotation !== 'none') {
      await this.#annotate(current, annotation === 'write' ? annotationOf(status) : undefined, signal);
    }
    if (subresource) {
      await this.#writeConditions(current, status.conditions ?? [], signal);
    }
  }

  /** A merge patch, which unlike server-side apply never creates a policy; the uid excludes a newer one of the name. */
  async #annotate(policy: KubernetesObject, value: string | undefined, signal: AbortSignal): Promise<void> {
    const { annotations = {}, uid = '' } = policy.metadata;
    if (annotations[ANNOTATIONS.networkPolicyStatus] === value) {
      return;
    }
    const body = { metadata: { uid, annotations: { [ANNOTATIONS.networkPolicyStatus]: value ?? null } } };
    const options = { fieldManager: STATUS_FIELD_MANAGER, signal };
    const key = keyOf(policy);
    const written = await unlessGone(this.#cluster.patch(NETWORK_POLICIES, key, { type: 'merge', body }, options));
    if (written !== undefined) {
      this.#policies.recordWrite(key, written);
    }
  }

  async #writeConditions(
    policy: KubernetesObject,
    conditions: readonly Condition[],
    signal: AbortSignal,
  ): Promise<void> {
    const key = keyOf(policy);
    if (isSame(byType(conditionsOf(policy)), byType(conditions))) {
      return;
    }
    const body: unknown = {
      apiVersion: apiVersionOf(NETWORK_POLICIES),
      kind: NETWORK_POLICIES.kind,
      metadata: { ...key, uid: policy.metadata.uid ?? '' },
      status: { conditions },
    };
    const patch = { type: 'apply', body: isJsonObject(body) ? body : {}, force: true } as const;
    const options = { fieldManager: STATUS_FIELD_MANAGER, subresource: 'status', signal };
    const written = await unlessGone(this.#cluster.patch(NETWORK_POLICIES, key, patch, options));
    if (written !== undefined) {
      this.#policies.recordWrite(key, written);
    }
  }
}

/** What {@link PolicyProjection} writes was changed by another client. */
export const projectionChanged: Predicate = ({ before, after }) =>
  before !== undefined &&
  after !== undefined &&
  (before.metadata.annotations?.[ANNOTATIONS.networkPolicyStatus] !==
    after.metadata.annotations?.[ANNOTATIONS.networkPolicyStatus] ||
    !isSame(byType(conditionsOf(before)), byType(conditionsOf(after))));

/** The verdict in one line: `False, FeatureNotSupported, FailClosed: Cilium 1.15.4 allows only port 30000`. */
export function annotationOf({ conditions, summary }: StatusFields): string {
  const accepted = findCondition(conditions, ACCEPTED);
  const { status = 'Unknown', reason = '', message = '' } = accepted ?? {};
  const state = [status, reason, summary?.effect ?? ''].filter((text) => text !== '' && text !== 'Accepted');
  return shortened(`Accepted=${state.join(', ')}: ${message}`, MAX_ANNOTATION);
}

/** A condition as others may have written it. */
type AnyCondition = { readonly type?: unknown };

function conditionsOf({ status }: KubernetesObject): readonly AnyCondition[] {
  const conditions = isJsonObject(status) ? status['conditions'] : undefined;
  return Array.isArray(conditions) ? conditions.filter((one) => isJsonObject(one)) : [];
}

function byType(conditions: readonly AnyCondition[]): Readonly<Record<string, AnyCondition>> {
  const ours = conditions.map((one) => [textOf(one.type), one] as const);
  return Object.fromEntries(ours.filter(([type]) => OUR_CONDITIONS.includes(type)));
}
