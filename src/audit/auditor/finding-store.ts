import { isDeepStrictEqual } from 'node:util';
import type { AuditFinding, FindingsListener } from '../finding.ts';

/** Most findings that are kept, of all policies. One takes 1 to 2 KB with all that stands for it in reports: 240 MB of a pod with 512. */
const MAX_FINDINGS = 120_000;
/** Most findings of one policy: it leaves some room for those of others. */
const MAX_POLICY_FINDINGS = 100_000;

/** Findings by policy and object, a bounded number, and who wants to know of changes. */
export class FindingStore {
  readonly #maxFindings: number;
  readonly #maxPolicyFindings: number;
  readonly #byPolicy = new Map<string, Map<string, AuditFinding>>();
  readonly #byNamespace = new Map<string, Map<string, AuditFinding>>();
  readonly #listeners = new Set<FindingsListener>();

  #size = 0;

  /** @param maxFindings default: {@link MAX_FINDINGS} @param maxPolicyFindings default: {@link MAX_POLICY_FINDINGS} */
  constructor(maxFindings = MAX_FINDINGS, maxPolicyFindings = MAX_POLICY_FINDINGS) {
    this.#maxFindings = maxFindings;
    this.#maxPolicyFindings = maxPolicyFindings;
  }

  /** Whether there is room for another finding of a policy. */
  hasRoom(policyId: string): boolean {
    return this.#size < this.#maxFindings && (this.#byPolicy.get(policyId)?.size ?? 0) < this.#maxPolicyFindings;
  }

  /**
   * Sets the finding of a policy about an object.
   * @param finding undefined: there is none
   * @returns whether it is kept; false: there is no room
   */
  set(policyId: string, object: string, finding: AuditFinding | undefined): boolean {
    const before = this.#byPolicy.get(policyId)?.get(object);
    if (finding === undefined ? before === undefined : isDeepStrictEqual(before, finding)) {
      return true;
    }
    if (before === undefined && !this.hasRoom(policyId)) {
      return false;
    }
    this.#size += (finding === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
    const id = `${policyId} ${object}`;
    const namespace = (finding ?? before)?.object.namespace ?? '';
    put(this.#byPolicy, policyId, object, finding);
    put(this.#byNamespace, namespace, id, finding);
    this.changed(namespace);
    return true;
  }

  get(policyId: string, object: string): AuditFinding | undefined {
    return this.#byPolicy.get(policyId)?.get(object);
  }

  ofPolicy(policyId: string): Iterable<AuditFinding> {
    return this.#byPolicy.get(policyId)?.values() ?? [];
  }

  of(namespace: string): readonly AuditFinding[] {
    return [...(this.#byNamespace.get(namespace)?.values() ?? [])];
  }

  namespaces(): Iterable<string> {
    return this.#byNamespace.keys();
  }

  onChange(listener: FindingsListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Tells that findings of a namespace changed; undefined: of any. */
  changed(namespace: string | undefined): void {
    this.#listeners.forEach((listener) => listener(namespace));
  }
}

function put(
  maps: Map<string, Map<string, AuditFinding>>,
  first: string,
  second: string,
  finding: AuditFinding | undefined,
): void {
  const own = maps.get(first) ?? new Map<string, AuditFinding>();
  if (finding === undefined) {
    own.delete(second);
  } else {
    own.set(second, finding);
  }
  if (own.size === 0) {
    maps.delete(first);
  } else {
    maps.set(first, own);
  }
}
