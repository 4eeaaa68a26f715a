// Pairs of an object and a policy: evaluated where the key of the verdict changed.
import type { ApiResource } from '../../cluster/index.ts';
import type { JsonObject, ObjectVerdict } from '../../engine/index.ts';
import type { Logger } from '../../log/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { createdObject } from '../created-object.ts';
import type { AuditorExceptions } from './auditor-exceptions.ts';
import type { KindVerdicts, ObjectRecord } from './kind-verdicts.ts';
import type { LookedUpObjects } from './looked-up-objects.ts';
import type { ObjectJudge } from './object-judge.ts';
import type { PolicyVersion } from './policy-version.ts';

/** Attempts to judge an object while what policies look up changes. After these, the change has caused a scan that comes later. */
const MAX_ATTEMPTS = 3;

export interface PairJudgeOptions {
  readonly judge: ObjectJudge;
  readonly lookups: Pick<LookedUpObjects, 'inputs' | 'revisionOf'>;
  readonly exceptions?: Pick<AuditorExceptions, 'keyOf'> | undefined;
  readonly log: Logger;
}

/** How an object is judged. */
interface JudgeReason {
  /** Also by policies whose keys did not change. */
  readonly isForced: boolean;
  /** Before scans. */
  readonly isUrgent: boolean;
}

/** Judges the objects of one kind. */
export class PairJudge {
  readonly #type: ApiResource;
  readonly #verdicts: KindVerdicts;
  readonly #options: PairJudgeOptions;
  readonly #isCurrent: (policy: PolicyVersion) => boolean;

  /** @param isCurrent whether a policy is as it was, and still asked */
  constructor(
    type: ApiResource,
    verdicts: KindVerdicts,
    options: PairJudgeOptions,
    isCurrent: (policy: PolicyVersion) => boolean,
  ) {
    this.#type = type;
    this.#verdicts = verdicts;
    this.#options = options;
    this.#isCurrent = isCurrent;
  }

  /** Asks the policies whose keys differ from those of the verdicts that are known. */
  async judge(
    record: ObjectRecord,
    object: KubernetesObject,
    policies: readonly PolicyVersion[],
    how: JudgeReason,
  ): Promise<void> {
    const created = createdObject(object, this.#type);
    const namespace = isOfNamespaces(this.#type) ? object.metadata.name : record.namespace;
    const { lookups } = this.#options;
    let open = policies.filter((policy) => this.#isCurrent(policy));
    for (let attempt = 1; attempt <= MAX_ATTEMPTS && open.length > 0; attempt += 1) {
      const asked = this.#changedKeys(record, created, namespace, open, how.isForced);
      const revisions = new Map(open.map((policy) => [policy, lookups.revisionOf(policy, namespace)]));
      const verdicts = await this.#verdictsOf(created, asked, how.isUrgent);
      // Nobody knows whether others read what was there before a change, or after it.
      const isCertain = (policy: PolicyVersion): boolean =>
        lookups.inputs(policy, namespace) === null || revisions.get(policy) === lookups.revisionOf(policy, namespace);
      this.#store(
        record,
        object,
        [...asked].filter(([policy]) => isCertain(policy)),
        verdicts,
      );
      open = open.filter((policy) => this.#isCurrent(policy) && !isCertain(policy));
    }
  }

  #changedKeys(
    record: ObjectRecord,
    object: JsonObject,
    namespace: string | undefined,
    policies: readonly PolicyVersion[],
    isForced: boolean,
  ): ReadonlyMap<PolicyVersion, string> {
    const asked = new Map<PolicyVersion, string>();
    for (const policy of policies) {
      const parameters = this.#options.lookups.inputs(policy, namespace);
      const exceptions = this.#options.exceptions?.keyOf(policy.id, namespace) ?? '';
      const key = policy.keys.of({ object, resource: this.#type, parameters, exceptions });
      if (isForced || key !== this.#verdicts.keyOf(record, policy)) {
        asked.set(policy, key);
      } else {
        this.#verdicts.confirm(record, policy);
      }
    }
    return asked;
  }

  /** Without verdicts where the host failed, which counts as an error of each policy. */
  async #verdictsOf(
    object: JsonObject,
    asked: ReadonlyMap<PolicyVersion, string>,
    isUrgent: boolean,
  ): Promise<readonly ObjectVerdict[]> {
    if (asked.size === 0) {
      return [];
    }
    try {
      return await this.#options.judge.verdicts(object, this.#type, asked, isUrgent);
    } catch (error) {
      this.#options.log.warn({ error: errorText(error) }, 'an object could not be judged');
      return [];
    }
  }

  #store(
    record: ObjectRecord,
    object: KubernetesObject,
    asked: readonly (readonly [PolicyVersion, string])[],
    verdicts: readonly ObjectVerdict[],
  ): void {
    for (const [policy, key] of asked) {
      if (this.#isCurrent(policy)) {
        const verdict = verdicts.find((one) => one.policy === policy.id);
        if (verdict !== undefined && (verdict.outcome === 'verdict' || verdict.outcome === 'skipped')) {
          this.#options.judge.share(policy, this.#type, key, verdict);
        }
        this.#verdicts.set(record, policy, key, verdict, object);
      }
    }
  }
}

/** Whether objects of a kind are namespaces, which stand for themselves. */
export function isOfNamespaces({ group, resource }: Pick<ApiResource, 'group' | 'resource'>): boolean {
  return group === '' && resource === 'namespaces';
}
