import type { AuditFinding, AuditFindings, FindingsListener } from '../../finding.ts';

/** The text of a number as a uid. */
function uidOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

/** A finding of the policy `cap/team` about a pod. */
export function podFinding(name: string, changes: Partial<AuditFinding> = {}): AuditFinding {
  const uid = uidOf(Number(name.replaceAll(/\D/g, '') || 0));
  return {
    policy: 'cap/team',
    policyId: 'clusterwide-team',
    policyUid: 'policy-1',
    policyGeneration: 1,
    mode: 'protect',
    result: 'fail',
    object: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name, uid },
    objectVersion: '7',
    message: 'say which team it belongs to',
    ...changes,
  };
}

/** AuditFindings that a test sets. */
export class MemoryFindings implements AuditFindings {
  /** Uids of policies that judged everything. */
  readonly settled = new Set<string>();
  /** Uids of policies that exist. Undefined: not known yet. */
  policies: ReadonlySet<string> | undefined = new Set(['policy-1']);
  readonly #listeners = new Set<FindingsListener>();
  #findings: readonly AuditFinding[] = [];

  set(findings: readonly AuditFinding[]): void {
    const before = this.#findings;
    this.#findings = findings;
    const namespaces = new Set([...before, ...findings].map(({ object }) => object.namespace ?? ''));
    namespaces.forEach((namespace) => this.changed(namespace));
  }

  changed(namespace?: string): void {
    this.#listeners.forEach((listener) => listener(namespace));
  }

  of(namespace: string): readonly AuditFinding[] {
    return this.#findings.filter(({ object }) => (object.namespace ?? '') === namespace);
  }

  namespaces(): Iterable<string> {
    return new Set(this.#findings.map(({ object }) => object.namespace ?? ''));
  }

  isSettled(policyUid: string): boolean {
    return this.settled.has(policyUid);
  }

  knowsPolicy(policyUid: string): boolean | undefined {
    return this.policies?.has(policyUid);
  }

  onChange(listener: FindingsListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
