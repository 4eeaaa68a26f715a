import { type Cluster, Reflector, type WatchEvent } from '../../cluster/index.ts';
import { type AdmissionPolicyObject, keyOf, keyText, POLICY_KINDS } from '../../resources/index.ts';
import { POLICY_SERVER } from './roles.ts';

/** How long to wait for the next change of a policy. Milliseconds. */
const PATIENCE_MS = 10_000;

/**
 * Resolves when every policy of the policy server has loaded or failed, or none has changed for {@link PATIENCE_MS}.
 * @throws the reason of the signal
 */
export async function policiesSettled(cluster: Pick<Cluster, 'list' | 'watch'>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const patience = setTimeout(resolve, PATIENCE_MS);
  const watching = new AbortController();
  signal.addEventListener('abort', () => reject(signal.reason), { signal: watching.signal });
  const kinds = POLICY_KINDS.map((type) => {
    const handler = new UnsettledPolicies(() => {
      patience.refresh();
      if (kinds.every(({ areSettled }) => areSettled)) {
        resolve();
      }
    });
    void new Reflector({ cluster, type, handler }).start(watching.signal);
    return handler;
  });
  try {
    await promise;
  } finally {
    clearTimeout(patience);
    watching.abort();
  }
}

/** The policies of a kind that are under way. */
class UnsettledPolicies {
  readonly #onChange: () => void;
  /** Undefined before the first list. */
  #names: Set<string> | undefined;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get areSettled(): boolean {
    return this.#names?.size === 0;
  }

  replace(policies: readonly AdmissionPolicyObject[]): void {
    this.#names = new Set(policies.filter(isUnderWay).map(nameOf));
    this.#onChange();
  }

  apply({ type, object }: WatchEvent<AdmissionPolicyObject>): void {
    if (type !== 'DELETED' && isUnderWay(object)) {
      this.#names?.add(nameOf(object));
    } else {
      this.#names?.delete(nameOf(object));
    }
    this.#onChange();
  }
}

function nameOf(policy: AdmissionPolicyObject): string {
  return keyText(keyOf(policy));
}

function isUnderWay({ metadata, spec, status }: AdmissionPolicyObject): boolean {
  const { phase = 'Pending', desiredRevision = 0, observedGeneration = 0 } = status ?? {};
  const hasSettled =
    phase !== 'Pending' &&
    phase !== 'Updating' &&
    desiredRevision > 0 &&
    observedGeneration >= (metadata.generation ?? 0);
  return spec.policyServer === POLICY_SERVER && !hasSettled;
}
