// Repeats the status of a NetworkPolicy in the NetworkPolicy itself: in its status where the API server serves one, and in an
// annotation where that is switched on.
import type { Logger } from 'pino';
import { ApiError, type Cluster, type Discovery, unlessGone } from '../cluster/index.ts';
import {
  ANNOTATIONS,
  apiVersionOf,
  type Condition,
  findCondition,
  isJsonObject,
  keyOf,
  type KubernetesObject,
  NETWORK_POLICY_STATUS_MANAGER,
  textOf,
} from '../resources/index.ts';
import { type ObjectCache, type Predicate, WrittenObjects } from '../runtime/index.ts';
import { errorText, shortened } from '../values/index.ts';
import { isSame } from './applied-status.ts';
import type { AnnotationMode } from './settings/annotation-mode.ts';
import { NETWORK_POLICIES } from './network-policies.ts';
import { ACCEPTED, OUR_CONDITIONS, type StatusFields } from './status-terms.ts';

/** Characters of the annotation: CNI agents keep all NetworkPolicies in memory. */
const MAX_ANNOTATION = 512;

export interface PolicyProjectionOptions {
  readonly cluster: Pick<Cluster, 'patch'>;
  readonly discovery: Pick<Discovery, 'find'>;
  readonly policies: Pick<ObjectCache, 'get' | 'subscribe'>;
  readonly annotation: AnnotationMode;
  readonly log: Logger;
}

/** Writes only what differs. Never writes a spec. */
export class PolicyProjection {
  readonly #options: PolicyProjectionOptions;
  readonly #policies: WrittenObjects;
  /** What this process has no right to, so that it is not tried again for each policy. */
  readonly #refused = new Set<string>();

  constructor(options: PolicyProjectionOptions) {
    this.#options = options;
    this.#policies = new WrittenObjects(options.policies);
  }

  /** @throws ApiError, ClusterError */
  async write(policy: KubernetesObject, status: StatusFields, signal: AbortSignal): Promise<void> {
    const { annotation } = this.#options;
    const annotate = (value?: string): Promise<void> => this.#annotate(this.#newest(policy), value, signal);
    if (annotation === 'none') {
      await this.#asFarAsAllowed('networkpolicies', () => annotate());
    } else {
      await annotate(annotation === 'write' ? annotationOf(status) : undefined);
    }
    if (await this.#hasStatus(signal)) {
      const write = (): Promise<void> => this.#writeConditions(this.#newest(policy), status.conditions ?? [], signal);
      await this.#asFarAsAllowed('networkpolicies/status', write);
    }
  }

  #newest(policy: KubernetesObject): KubernetesObject {
    return this.#policies.get(keyOf(policy)) ?? policy;
  }

  /** Whether the API server serves the status of KEP-2943. */
  async #hasStatus(signal: AbortSignal): Promise<boolean> {
    const type = await this.#options.discovery.find(apiVersionOf(NETWORK_POLICIES), NETWORK_POLICIES.kind, { signal });
    return type?.subresources.includes('status') === true;
  }

  async #asFarAsAllowed(resource: string, write: () => Promise<void>): Promise<void> {
    if (this.#refused.has(resource)) {
      return;
    }
    try {
      await write();
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 403)) {
        throw error;
      }
      this.#refused.add(resource);
      this.#options.log.warn(
        { resource, error: errorText(error) },
        'no right to what NetworkPolicies say of their status',
      );
    }
  }

  /** A merge patch, which unlike server-side apply never creates a policy; the uid excludes a newer one of the name. */
  async #annotate(policy: KubernetesObject, value: string | undefined, signal: AbortSignal): Promise<void> {
    const { annotations = {}, uid = '' } = policy.metadata;
    if (annotations[ANNOTATIONS.networkPolicyStatus] === value) {
      return;
    }
    const body = { metadata: { uid, annotations: { [ANNOTATIONS.networkPolicyStatus]: value ?? null } } };
    const options = { fieldManager: NETWORK_POLICY_STATUS_MANAGER, signal };
    const key = keyOf(policy);
    const written = await unlessGone(
      this.#options.cluster.patch(NETWORK_POLICIES, key, { type: 'merge', body }, options),
    );
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
    const options = { fieldManager: NETWORK_POLICY_STATUS_MANAGER, subresource: 'status', signal };
    const written = await unlessGone(this.#options.cluster.patch(NETWORK_POLICIES, key, patch, options));
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

/** The verdict in one line: `Accepted=False, FeatureNotSupported, FailClosed, generation 2, since 2026-11-24T08:00:00Z: …`. */
export function annotationOf({ conditions, summary, observedGeneration }: StatusFields): string {
  const accepted = findCondition(conditions, ACCEPTED);
  const { status = 'Unknown', reason = '', message = '', lastTransitionTime = '' } = accepted ?? {};
  const state = [status, reason, summary?.effect ?? ''].filter((text) => text !== '' && text !== 'Accepted');
  const when = `generation ${observedGeneration ?? 0}, since ${lastTransitionTime}`;
  return shortened(`Accepted=${state.join(', ')}, ${when}: ${message}`, MAX_ANNOTATION);
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
