// Writes into the statuses of exceptions how many existing objects they are for.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  apiVersionOf,
  AUDITOR_FIELD_MANAGER,
  exceptedPolicyId,
  keyOf,
  type ObjectKey,
  POLICY_EXCEPTIONS,
  type PolicyException,
} from '../../resources/index.ts';
import {
  type CachedObjects,
  type Clock,
  Controller,
  type ReconcileResult,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  SYSTEM_CLOCK,
  watch,
  WrittenObjects,
} from '../../runtime/index.ts';
import { asJson, inertTexts } from '../../values/index.ts';
import type { AuditFindings } from '../finding.ts';
import { type AuditShare, WHOLE_CLUSTER } from '../members/audit-share.ts';
import type { AuditedPolicies } from '../policy-status/audit-status-controller.ts';
import { type MatchedStatus, matchedStatus } from './matched-status.ts';

/** Delay that collects changes of findings into one write. Milliseconds. */
const GATHER_MS = 1_000;
/** Minimum interval between two writes about an exception. Milliseconds. */
const CHANGE_INTERVAL_MS = 10_000;

export interface MatchedStatusOptions {
  readonly cluster: Pick<Cluster, 'patch'>;
  /** Where the kind is not served, they are never synced. */
  readonly caches: SharedCaches;
  readonly audited: Pick<AuditFindings, 'of' | 'onChange'> & Pick<AuditedPolicies, 'coverage' | 'onCoverage'>;
  /** Whose exceptions it writes about. Default: those of all namespaces. */
  readonly share?: AuditShare;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Default: that of the machine. */
  readonly clock?: Clock;
}

/** The part of the statuses of exceptions that an auditor writes. The controller leaves it as it is. */
export class MatchedStatusController implements Runnable {
  readonly name = 'matched-objects';
  readonly #options: MatchedStatusOptions;
  readonly #cache: CachedObjects<PolicyException>;
  readonly #exceptions: WrittenObjects<PolicyException>;
  readonly #byPolicy;
  readonly #byNamespace;
  readonly #controller: Controller;
  /** When exceptions were last written, by uid. Losing it costs a write too early. */
  readonly #writtenAt = new Map<string, number>();

  constructor(options: MatchedStatusOptions) {
    const { caches, clock, log, metrics } = options;
    const cache = caches.cache(POLICY_EXCEPTIONS);
    this.#options = options;
    this.#cache = cache;
    this.#exceptions = new WrittenObjects(cache);
    this.#byPolicy = cache.index(({ metadata, spec }) =>
      spec.policies.map((one) => exceptedPolicyId(one, metadata.namespace ?? '')),
    );
    this.#byNamespace = cache.index(({ metadata }) => [metadata.namespace ?? '']);
    this.#controller = new Controller({
      name: this.name,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      // Not at each use.
      watches: [watch(cache, { when: [({ before, after }) => !isDeepStrictEqual(readOf(before), readOf(after))] })],
      log,
      ...(clock === undefined ? {} : { clock }),
      ...(metrics === undefined ? {} : { metrics }),
    });
    cache.subscribe(({ before, after }) => {
      if (after === undefined) {
        this.#writtenAt.delete(before?.metadata.uid ?? '');
      }
    });
  }

  async start(signal: AbortSignal): Promise<void> {
    const { audited, share = WHOLE_CLUSTER } = this.#options;
    const ends = [
      share.onChange(() => this.#changed(undefined)),
      audited.onChange((namespace) => this.#changed(namespace)),
      audited.onCoverage((policy) => this.#enqueue(this.#byPolicy.get(policy))),
    ];
    try {
      await this.#controller.start(signal);
    } finally {
      ends.forEach((end) => end());
    }
  }

  #changed(namespace: string | undefined): void {
    this.#enqueue(namespace === undefined ? this.#cache.list() : this.#byNamespace.get(namespace));
  }

  #enqueue(exceptions: Iterable<PolicyException>): void {
    for (const exception of exceptions) {
      this.#controller.enqueue(keyOf(exception), { afterMs: GATHER_MS });
    }
  }

  /** @throws ApiError, ClusterError */
  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const { audited, share = WHOLE_CLUSTER, clock = SYSTEM_CLOCK } = this.#options;
    const exception = this.#exceptions.get(key);
    if (exception?.status?.accepted === undefined || !share.mayWrite(key.namespace ?? '')) {
      return {};
    }
    const findings = audited.of(key.namespace ?? '');
    const matched = matchedStatus(exception, { findings, coverage: (policy) => audited.coverage(policy) });
    if (matched === undefined || isDeepStrictEqual(exception.status.matched, inertTexts(matched))) {
      return {};
    }
    const { uid = '' } = exception.metadata;
    const waitMs = (this.#writtenAt.get(uid) ?? -Infinity) + CHANGE_INTERVAL_MS - clock.date();
    if (waitMs > 0) {
      return { requeueAfterMs: waitMs };
    }
    this.#writtenAt.set(uid, clock.date());
    await this.#write(key, uid, matched, signal);
    return {};
  }

  async #write(key: ObjectKey, uid: string, matched: MatchedStatus, signal: AbortSignal): Promise<void> {
    const body = asJson({
      apiVersion: apiVersionOf(POLICY_EXCEPTIONS),
      kind: POLICY_EXCEPTIONS.kind,
      // With the uid, an exception that was deleted and created anew does not get the status of the former one.
      metadata: { ...key, uid },
      status: { matched: inertTexts(matched) },
    });
    const options = { subresource: 'status', fieldManager: AUDITOR_FIELD_MANAGER, signal };
    const patch = { type: 'apply', body, force: true } as const;
    this.#exceptions.recordWrite(
      key,
      await unlessGone(this.#options.cluster.patch(POLICY_EXCEPTIONS, key, patch, options)),
    );
  }
}

function readOf(exception: PolicyException | undefined): object | undefined {
  const { metadata, spec, status } = exception ?? {};
  return exception && { uid: metadata?.uid, spec, accepted: status?.accepted, matched: status?.matched };
}
