// Reads and writes PolicyRevisions.
import { ApiError, type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  CONTROLLER_FIELD_MANAGER,
  type KubernetesObject,
  isRevisedGovernanceKind,
  keyOf,
  POLICY_REVISIONS,
  POLICY_SERVER_LABEL,
  POLICY_UID_LABEL,
  policyId,
  type PolicyRevision,
  type RevisionPreview,
  revisionMismatch,
  revisionName,
  revisionParts,
  timeText,
  MANAGED_BY,
} from '../../resources/index.ts';
import { type ObjectCache, type ObjectIndex, WrittenObjects } from '../../runtime/index.ts';
import type { PrevalidatedRevision } from '../after-prevalidation.ts';
import { cannotServe } from '../revision-choice.ts';
import type { RevisionFacts, RolloutStep } from '../rollout-view.ts';
import { asJson, inertTexts } from '../../values/index.ts';

/** A policy of any kind that has revisions. */
export type RevisedPolicy = KubernetesObject & { readonly spec: object };

type RevisionStatus = NonNullable<PolicyRevision['status']>;
type Transition = RolloutStep & { readonly type: 'transition' };

export interface RevisionStoreOptions {
  readonly cluster: Cluster;
  readonly cache: ObjectCache<PolicyRevision>;
  /** The namespace of the product, with the revisions. */
  readonly namespace: string;
  /** Whether an auditor computes previews. Default: yes. */
  readonly isAudited?: boolean;
}

/** What a revision says of its preview until an auditor has computed it. */
const NOT_COMPUTED: RevisionPreview = {
  summary: 'Unknown',
  state: 'Unknown',
  reason: 'NotComputed',
  message: 'the auditor has not computed it',
};
const NO_AUDITOR: RevisionPreview = { ...NOT_COMPUTED, reason: 'NoAuditor', message: 'no auditor runs' };

export class RevisionStore {
  readonly #options: RevisionStoreOptions;
  readonly #objects: WrittenObjects<PolicyRevision>;
  readonly #byPolicy: ObjectIndex<PolicyRevision>;

  constructor(options: RevisionStoreOptions) {
    this.#options = options;
    this.#objects = new WrittenObjects(options.cache);
    this.#byPolicy = options.cache.index(({ spec }) => [spec.policyId]);
  }

  /** The revisions of all policies, also deleted ones, with this id; ordered by number. */
  of(id: string): readonly PolicyRevision[] {
    return this.#objects
      .current(this.#byPolicy.get(id), ({ spec }) => spec.policyId === id)
      .toSorted((a, b) => a.spec.revision - b.spec.revision);
  }

  /**
   * The revisions of this policy, without those of a deleted one of the same name, and without those that the controller cannot
   * have written; ordered by number.
   */
  ofPolicy(policy: Pick<KubernetesObject, 'metadata'> | undefined, id: string): readonly PolicyRevision[] {
    return this.of(id).filter(
      (revision) => revision.spec.policy.uid === policy?.metadata.uid && revisionMismatch(revision) === undefined,
    );
  }

  /**
   * @param policyServer that runs it; empty for a governance policy
   * @throws ApiError: AlreadyExists if the cache does not have an existing revision of that number yet
   */
  async create(
    policy: RevisedPolicy,
    policyServer: string,
    { revision, rollbackOf, ownWebhook, refresh }: RolloutStep & { readonly type: 'create' },
    signal: AbortSignal,
  ): Promise<void> {
    const id = policyId(policy);
    const { apiVersion, kind, metadata, spec } = policy;
    const { name = '', namespace, uid = '' } = metadata;
    const object: PolicyRevision = {
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyRevision',
      metadata: {
        name: revisionName(id, revision),
        namespace: this.#options.namespace,
        labels: { ...MANAGED_BY, [POLICY_SERVER_LABEL]: policyServer, [POLICY_UID_LABEL]: uid },
      },
      spec: {
        policy: { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }), uid },
        policyId: id,
        policyServer,
        revision,
        policyGeneration: metadata.generation ?? 1,
        ...(rollbackOf === undefined ? {} : { rollbackOf }),
        ...(ownWebhook ? { ownWebhook } : {}),
        ...(refresh === undefined ? {} : { refresh }),
        snapshot: asJson(spec),
      },
    };
    const created = await this.#options.cluster.create<PolicyRevision>(POLICY_REVISIONS, object, this.#writing(signal));
    this.#objects.recordWrite(keyOf(created), created);
  }

  /** Writes a new state of a revision. @param now milliseconds since 1970 */
  async transition(
    revision: PolicyRevision,
    { to, reason, message, order }: Transition,
    isEnforced: boolean,
    now: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { nextRetry: _, enforced: __, triedParameters: ___, ...before } = revision.status ?? {};
    const time = timeText(now);
    await this.#writeStatus(
      revision,
      {
        ...before,
        state: to,
        stateSince: time,
        reason,
        message,
        ...(order === undefined ? {} : { order }),
        ...enforcedField(to, reason, isEnforced),
        ...(to === 'Serving' ? { servingSince: time } : {}),
        ...(to === 'Retired' ? { retiredAt: time } : {}),
      },
      signal,
    );
  }

  /**
   * Writes the result of a pre-validation.
   * @param now milliseconds since 1970
   * @param order of a revision that serves at once, because nothing has to load it
   */
  async recordPrevalidation(
    revision: PolicyRevision,
    result: PrevalidatedRevision,
    isEnforced: boolean,
    now: number,
    signal: AbortSignal,
    order?: number,
  ): Promise<void> {
    const { nextRetry, triedParameters, modules, warnings, ...rest } = result;
    const facts = { ...rest, state: order === undefined ? rest.state : 'Serving' } as const;
    const before = revision.status ?? {};
    await this.#writeStatus(
      revision,
      {
        ...facts,
        ...enforcedField(facts.state, facts.reason, isEnforced),
        ...partsField(revision, modules),
        ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
        stateSince: before.state === facts.state ? (before.stateSince ?? timeText(now)) : timeText(now),
        ...(before.order === undefined ? {} : { order: before.order }),
        ...(before.servingSince === undefined ? {} : { servingSince: before.servingSince }),
        ...(order === undefined ? {} : { order, servingSince: timeText(now) }),
        ...(before.retiredAt === undefined ? {} : { retiredAt: before.retiredAt }),
        ...(before.refreshed === undefined ? {} : { refreshed: before.refreshed }),
        ...(before.preview === undefined ? {} : { preview: before.preview }),
        ...(triedParameters === undefined ? {} : { triedParameters }),
        ...(nextRetry === undefined ? {} : { nextRetry: timeText(Math.ceil(nextRetry / 1000) * 1000) }),
      },
      signal,
    );
  }

  /** Writes whether replicas answer by the failurePolicy while nothing serves. */
  async setEnforced(revision: PolicyRevision, isEnforced: boolean, signal: AbortSignal): Promise<void> {
    const { enforced: _, ...before } = revision.status ?? {};
    const isDefault = isEnforced === isEnforcedByDefault(revision.status);
    await this.#writeStatus(revision, { ...before, ...(isDefault ? {} : { enforced: isEnforced }) }, signal);
  }

  /** Writes that the modules of a revision have not changed. */
  async recordRefresh(revision: PolicyRevision, refreshed: string, signal: AbortSignal): Promise<void> {
    await this.#writeStatus(revision, { ...revision.status, refreshed }, signal);
  }

  async delete(revision: PolicyRevision, signal: AbortSignal): Promise<void> {
    const key = keyOf(revision);
    const { uid = '', resourceVersion = '' } = revision.metadata;
    try {
      // Conflicts if another leader has written the revision since, perhaps to make it serve.
      const preconditions = { uid, resourceVersion };
      await unlessGone(this.#options.cluster.delete(POLICY_REVISIONS, key, { preconditions, signal }));
    } catch (error) {
      this.#objects.forget(key);
      throw error;
    }
    this.#objects.recordWrite(key, undefined);
  }

  /** None of a governance policy, which judges no requests. */
  #previewOf({ spec }: PolicyRevision, { preview }: RevisionStatus): Pick<RevisionStatus, 'preview'> {
    const first = this.#options.isAudited === false ? NO_AUDITOR : NOT_COMPUTED;
    return isRevisedGovernanceKind(spec.policy.kind)
      ? {}
      : { preview: preview?.computedAt === undefined ? first : preview };
  }

  async #writeStatus(revision: PolicyRevision, status: RevisionStatus, signal: AbortSignal): Promise<PolicyRevision> {
    const observedGeneration = revision.metadata.generation;
    const body = {
      ...revision,
      status: {
        ...inertTexts(status),
        ...this.#previewOf(revision, status),
        ...(observedGeneration === undefined ? {} : { observedGeneration }),
      },
    };
    const key = keyOf(revision);
    try {
      // Conflicts if the revision was written since, because the body has its resourceVersion.
      const written = await this.#options.cluster.update<PolicyRevision>(POLICY_REVISIONS, body, {
        ...this.#writing(signal),
        subresource: 'status',
      });
      this.#objects.recordWrite(key, written);
      return written;
    } catch (error) {
      if (error instanceof ApiError && (error.code === 409 || error.code === 404)) {
        this.#objects.forget(key);
      }
      throw error;
    }
  }

  #writing(signal: AbortSignal): { fieldManager: string; signal: AbortSignal } {
    return { fieldManager: CONTROLLER_FIELD_MANAGER, signal };
  }
}

/** The field of the status with what a revision consists of. */
function partsField(
  { spec }: PolicyRevision,
  parts: PrevalidatedRevision['modules'],
): Pick<RevisionStatus, 'modules' | 'templates'> {
  return isRevisedGovernanceKind(spec.policy.kind)
    ? { templates: parts.map(({ name, module: kind, digest }) => ({ name, kind, digest })) }
    : { modules: parts.map((part) => ({ ...part })) };
}

/** A revision on its way for the first time stops nothing, unless {@link RevisionStore.setEnforced} says so. */
function isEnforcedByDefault({ state, order = 0 }: PolicyRevision['status'] & object = {}): boolean {
  return order > 0 || (state !== 'Validated' && state !== 'Staged');
}

/** Only false is written, and on failed revisions only, until {@link RevisionStore.setEnforced}. */
function enforcedField(
  state: RevisionFacts['state'],
  reason: string,
  isEnforced: boolean,
): { readonly enforced?: false } {
  return cannotServe({ state, reason }) && !isEnforced ? { enforced: false } : {};
}

/** A revision as the planner sees it. @typeParam Spec of the kind of its policy: no schema validates it, its controller wrote it */
export function revisionFacts<Spec>({ spec, status = {}, metadata }: PolicyRevision): RevisionFacts<Spec> {
  return {
    number: spec.revision,
    policy: spec.policy.name,
    generation: spec.policyGeneration,
    rollbackOf: spec.rollbackOf,
    state: status.state ?? 'Candidate',
    reason: status.reason ?? '',
    message: status.message ?? '',
    modules: revisionParts({ status }),
    warnings: status.warnings ?? [],
    attempts: status.attempts ?? 0,
    nextRetry: status.nextRetry === undefined ? undefined : Date.parse(status.nextRetry),
    triedParameters: status.triedParameters,
    stateSince: Date.parse(status.stateSince ?? metadata.creationTimestamp ?? ''),
    order: status.order ?? 0,
    servingSince: status.servingSince === undefined ? undefined : Date.parse(status.servingSince),
    snapshot: spec.snapshot as Spec,
    ownWebhook: spec.ownWebhook ?? false,
    refresh: spec.refresh,
    refreshed: status.refreshed,
    isEnforced: status.enforced ?? isEnforcedByDefault(status),
  };
}
