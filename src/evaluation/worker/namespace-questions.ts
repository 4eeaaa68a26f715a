import type { ContextAwareResource, HostPort, InventoryMode } from '../../engine/index.ts';
import { parseJson } from '../../values/index.ts';

/**
 * What the table of policies asks of namespaces whose labels it was not told. An evaluation cannot wait for an answer: the
 * question is noted, and answered with an error; whoever sees that there was one lets the review wait elsewhere.
 */
export class NamespaceQuestions implements HostPort {
  /** Whether questions are those of a guest, which are answered. */
  isGuestRunning = false;
  readonly #port: Required<HostPort>;
  #problem: string | undefined;
  #unanswered: string | undefined;

  /** @param port answers guests */
  constructor(port: Required<HostPort>) {
    this.#port = port;
  }

  /** The namespace that was asked for since the review began. */
  get unanswered(): string | undefined {
    return this.#unanswered;
  }

  /** A review begins; `problem`: what is to be said about its namespace, when the cluster was asked already. */
  begin(problem: string | null): void {
    this.#problem = problem ?? undefined;
    this.#unanswered = undefined;
    this.isGuestRunning = false;
  }

  request(capability: string, payload: string): string {
    if (this.isGuestRunning) {
      return this.#port.request(capability, payload);
    }
    const { name } = parseJson(payload) as { readonly name?: unknown };
    this.#unanswered = String(name);
    throw new Error(this.#problem ?? `the labels of namespace ${String(name)} are not known to the policy server yet`);
  }

  revisionOf(resources: readonly ContextAwareResource[]): string | undefined {
    return this.#port.revisionOf(resources);
  }

  inventory(mode: InventoryMode, resources: readonly ContextAwareResource[]): string {
    return this.#port.inventory(mode, resources);
  }
}
