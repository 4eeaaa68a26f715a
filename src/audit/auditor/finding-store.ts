import { isDeepStrictEqual } from 'node:util';
import type { AuditFinding, FindingsListener } from '../finding.ts';

/** Findings by policy and object, and who wants to know of changes. */
export class FindingStore {
  readonly #byPolicy = new Map<string, Map<string, AuditFinding>>();
  readonly #byNamespace = new Map<string, Map<string, AuditFinding>>();
  readonly #listeners = new Set<FindingsListener>();

  /** Sets the finding of a policy about an object; undefined: there is none. */
  set(policyId: string, object: string, finding: AuditFinding | undefined): void {
    const before = this.#byPolicy.get(policyId)?.get(object);
    if (finding === undefined ? before === undefined : isDeepStrictEqual(before, finding)) {
      return;
    }
    const id = `${policyId} ${object}`;
    const namespace = (finding ?? before)?.object.namespace ?? '';
    put(this.#byPolicy, policyId, object, finding);
    put(this.#byNamespace, namespace, id, finding);
    this.changed(namespace);
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
