// What is known of the objects of one kind: no objects, but their versions, the key of each verdict, and findings.
import type { ApiResource } from '../../cluster/index.ts';
import type { ObjectVerdict } from '../../engine/index.ts';
import { apiVersionOf, groupResourceOf, keyOf, keyText, type KubernetesObject } from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import { auditedObject, auditResult, resultOf } from '../audit-result.ts';
import { type Counts, NO_COUNTS } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';
import type { FindingStore } from './finding-store.ts';
import type { PolicyVersion } from './policy-version.ts';

type Result = ReturnType<typeof resultOf>;

interface Pair {
  /** Empty: the verdict does not hold, such as an error. */
  readonly key: string;
  readonly result: Result;
  /** Whether there was no room for the finding. */
  readonly isUnlisted: boolean;
}

/** An object that exists. */
export interface ObjectRecord {
  /** Unique in the kind. */
  readonly id: string;
  readonly uid: string;
  readonly namespace: string | undefined;
  /** When the kind was last told of it, see {@link KindVerdicts.now}. */
  seen: number;
  /** By policy. */
  readonly pairs: Map<string, Pair>;
}

/** Errors of a policy with objects of a kind that are kept as findings. All are counted. */
const MAX_ERRORS = 10;
/** Longest message, as in reports. Characters. */
const MAX_MESSAGE = 1_024;
const SECRET_MESSAGE = 'the message may quote the Secret: portcullis audit secrets --include-secrets shows it';

export class KindVerdicts {
  readonly #type: ApiResource;
  readonly #isOfSecrets: boolean;
  readonly #findings: FindingStore;
  readonly #records = new Map<string, ObjectRecord>();
  /** Pairs by policy and result. */
  readonly #counts = new Map<string, Map<Result, number>>();
  /** Pairs without room for their findings, by policy. */
  readonly #unlisted = new Map<string, number>();
  #now = 0;

  constructor(type: ApiResource, findings: FindingStore) {
    this.#type = type;
    this.#isOfSecrets = groupResourceOf(type) === 'secrets';
    this.#findings = findings;
  }

  get size(): number {
    return this.#records.size;
  }

  /** The number of objects seen so far, as a time: objects seen later have a higher one. */
  get now(): number {
    return this.#now;
  }

  /** Notes that an object exists. Another one of the same name is gone then. */
  see(object: KubernetesObject): ObjectRecord {
    const id = keyText(keyOf(object));
    const { uid = '', namespace } = object.metadata;
    let record = this.#records.get(id);
    if (record?.uid !== uid) {
      this.remove(id);
      record = { id, uid, namespace, seen: 0, pairs: new Map() };
      this.#records.set(id, record);
    }
    this.#now += 1;
    record.seen = this.#now;
    return record;
  }

  get(id: string): ObjectRecord | undefined {
    return this.#records.get(id);
  }

  /** The key of the verdict of a policy on an object; undefined if there is none, or its finding is missing and has room now. */
  keyOf({ pairs }: ObjectRecord, { id }: PolicyVersion): string | undefined {
    const pair = pairs.get(id);
    return pair?.isUnlisted === true && this.#findings.hasRoom(id) ? undefined : pair?.key;
  }

  /** Sets what a policy says about an object. @param verdict undefined: nothing */
  set(
    record: ObjectRecord,
    policy: PolicyVersion,
    key: string,
    verdict: ObjectVerdict | undefined,
    object: KubernetesObject,
  ): void {
    if (this.#records.get(record.id) !== record) {
      // Deleted meanwhile.
      return;
    }
    const result = verdict === undefined ? 'error' : resultOf(verdict);
    this.#count(policy.id, record.pairs.get(policy.id), -1);
    const isKept =
      verdict !== undefined &&
      result !== 'pass' &&
      result !== 'unmatched' &&
      (result !== 'error' || this.counts(policy.id).unjudged < MAX_ERRORS);
    const finding = isKept ? this.#finding(policy, verdict, result, object) : undefined;
    const isUnlisted = !this.#findings.set(policy.id, this.#objectId(record), finding);
    const pair = { key: result === 'error' ? '' : key, result, isUnlisted };
    record.pairs.set(policy.id, pair);
    this.#count(policy.id, pair, 1);
  }

  /** Notes that a verdict holds for the policy's object as it is now. */
  confirm(record: ObjectRecord, { id, origin }: PolicyVersion): void {
    const finding = this.#findings.get(id, this.#objectId(record));
    if (finding !== undefined) {
      const { severity: _severity, category: _category, ...rest } = finding;
      const { uid, generation, ...labels } = origin;
      const now = { ...rest, policyUid: uid, policyGeneration: generation, ...labels };
      this.#findings.set(id, this.#objectId(record), now);
    }
  }

  /** Removes an object. */
  remove(id: string): void {
    const record = this.#records.get(id);
    if (record !== undefined) {
      this.#records.delete(id);
      for (const policy of record.pairs.keys()) {
        this.#removePair(record, policy);
      }
    }
  }

  /** Removes all objects that were not seen after a time. */
  removeUnseen(since: number): void {
    this.removeWhere(({ seen }) => seen <= since);
  }

  removeWhere(isGone: (record: ObjectRecord) => boolean): void {
    for (const record of this.#records.values()) {
      if (isGone(record)) {
        this.remove(record.id);
      }
    }
  }

  /** Removes what a policy said. */
  removePolicy(policy: string): void {
    for (const record of this.#records.values()) {
      this.#removePair(record, policy);
    }
    this.#counts.delete(policy);
    this.#unlisted.delete(policy);
  }

  counts(policy: string): Counts {
    const counts = this.#counts.get(policy);
    if (counts === undefined) {
      return NO_COUNTS;
    }
    const of = (result: Result): number => counts.get(result) ?? 0;
    const scanned = counts.values().reduce((sum, count) => sum + count, 0);
    return {
      scanned,
      matched: scanned - of('unmatched'),
      passed: of('pass'),
      failed: of('fail'),
      wouldChange: of('wouldChange'),
      skipped: of('skip'),
      unjudged: of('error'),
    };
  }

  /** Findings of a policy that are only counted. */
  unlisted(policy: string): number {
    return this.#unlisted.get(policy) ?? 0;
  }

  #removePair(record: ObjectRecord, policy: string): void {
    this.#count(policy, record.pairs.get(policy), -1);
    record.pairs.delete(policy);
    this.#findings.set(policy, this.#objectId(record), undefined);
  }

  #count(policy: string, pair: Pair | undefined, by: number): void {
    if (pair !== undefined) {
      const counts = this.#counts.get(policy) ?? new Map<Result, number>();
      counts.set(pair.result, (counts.get(pair.result) ?? 0) + by);
      this.#counts.set(policy, counts);
      if (pair.isUnlisted) {
        this.#unlisted.set(policy, this.unlisted(policy) + by);
      }
    }
  }

  #finding(
    { id, name, origin: { uid, generation, ...labels } }: PolicyVersion,
    verdict: ObjectVerdict,
    result: AuditFinding['result'],
    object: KubernetesObject,
  ): AuditFinding {
    const { resourceVersion } = object.metadata;
    return {
      ...auditResult(
        name,
        keptVerdict(verdict, this.#isOfSecrets),
        result,
        auditedObject(object, apiVersionOf(this.#type), this.#type.kind),
      ),
      policyId: id,
      policyUid: uid,
      policyGeneration: generation,
      ...(resourceVersion === undefined ? {} : { objectVersion: resourceVersion }),
      ...labels,
    };
  }

  #objectId({ id }: ObjectRecord): string {
    return `${groupResourceOf(this.#type)} ${id}`;
  }
}

/**
 * What is kept of a verdict. Findings are read by more people than Secrets are, which messages may quote; and a tenant may have many
 * objects, so that the messages of members, which nobody reads here, are left out.
 */
function keptVerdict({ members: _members, ...verdict }: ObjectVerdict, isOfSecret: boolean): ObjectVerdict {
  const message = isOfSecret ? SECRET_MESSAGE : verdict.message;
  return { ...verdict, ...(message === undefined ? {} : { message: shortened(message, MAX_MESSAGE) }) };
}
