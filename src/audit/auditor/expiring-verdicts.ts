// Verdicts that may depend on more than their keys: they are given anew after changes of what policies look up, and from time to time.
import type { Cluster } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';
import { followKind } from './follow-kind.ts';
import type { PolicyVersion } from './policy-version.ts';

/** Other threads read the changed object a moment later. Milliseconds. */
const SETTLE_MS = 2_000;
/** Shortest time between two scans of a policy whose looked-up objects change all the time. Milliseconds. */
const MIN_INTERVAL_MS = 30_000;
/** After this time answers of the host count as old: of registries, of DNS. Milliseconds. */
const EXPIRY_MS = 60 * 60_000;
const TICK_MS = 500;

export interface ExpiringVerdictsOptions {
  readonly cluster: Pick<Cluster, 'discovery' | 'list' | 'watch'>;
  /** Judges all objects by a policy again. */
  readonly judgeAgain: (policy: PolicyVersion) => void;
  readonly log: Logger;
}

interface Expiring {
  /** When all objects were judged by it for the last time, for whatever reason. */
  judgedAt: number;
  /** The same, because of a change. */
  askedAt: number;
  /** When something that it looks up changed since. */
  changedAt: number | undefined;
}

/** Notices when verdicts of policies may not hold any more. */
export class ExpiringVerdicts implements Disposable {
  readonly #options: ExpiringVerdictsOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #watches = new Map<string, AbortController>();
  #policies: ReadonlyMap<PolicyVersion, Expiring> = new Map();

  constructor(options: ExpiringVerdictsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#tick(performance.now()), TICK_MS).unref();
  }

  /** These are all policies. */
  follow(policies: Iterable<PolicyVersion>): void {
    const now = performance.now();
    const expiring = [...policies].filter(({ expires }) => expires);
    this.#policies = new Map(
      expiring.map((policy) => [
        policy,
        this.#policies.get(policy) ?? { judgedAt: now, askedAt: -Infinity, changedAt: undefined },
      ]),
    );
    const kinds = new Map(expiring.flatMap(({ looksUp }) => looksUp.map((kind) => [kindText(kind), kind] as const)));
    for (const [text, watch] of this.#watches) {
      if (!kinds.has(text)) {
        watch.abort();
        this.#watches.delete(text);
      }
    }
    for (const [text, kind] of kinds) {
      if (!this.#watches.has(text)) {
        const stop = new AbortController();
        this.#watches.set(text, stop);
        void this.#watch(kind, stop.signal);
      }
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#watches.values().forEach((watch) => watch.abort());
  }

  /** Kinds that are not served, or not to be read, are left to expiry. */
  async #watch(kind: KindName, signal: AbortSignal): Promise<void> {
    const { cluster, log } = this.#options;
    try {
      const type = await cluster.discovery.find(kind.apiVersion, kind.kind, { signal });
      if (type !== undefined && !signal.aborted) {
        await followKind(cluster, type, () => this.#changed(kindText(kind)), signal);
      }
    } catch (error) {
      log.debug(
        { kind: kindText(kind), error: errorText(error) },
        'changes of a kind that policies look up are not seen',
      );
    }
  }

  #changed(kind: string): void {
    for (const [{ looksUp }, state] of this.#policies) {
      if (looksUp.some((one) => kindText(one) === kind)) {
        state.changedAt ??= performance.now();
      }
    }
  }

  #tick(now: number): void {
    for (const [policy, state] of this.#policies) {
      const isChanged = state.changedAt !== undefined && now - state.changedAt >= SETTLE_MS;
      const isDue = isChanged && now - state.askedAt >= MIN_INTERVAL_MS;
      if (isDue || now - state.judgedAt >= EXPIRY_MS) {
        state.judgedAt = now;
        state.askedAt = isDue ? now : state.askedAt;
        state.changedAt = undefined;
        this.#options.judgeAgain(policy);
      }
    }
  }
}

type KindName = PolicyVersion['looksUp'][number];

function kindText({ apiVersion, kind }: KindName): string {
  return `${apiVersion} ${kind}`;
}
