import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Cluster } from '../../cluster/index.ts';
import { type KubernetesObject, type Readiness, MANAGED_BY_SELECTOR } from '../../resources/index.ts';
import {
  aborted,
  type Clock,
  Controller,
  type EventSink,
  type ObjectCache,
  type ReconcileAttempt,
  type ReconcileResult,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  SYSTEM_CLOCK,
  watch,
  withStatus,
  worstFailure,
} from '../../runtime/index.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '../webhooks/webhook-kinds.ts';
import type { WebhookConfiguration } from '../webhooks/webhook-object.ts';
import type { CertificateBundle } from './certificate-bundle.ts';
import { CertificateMetrics } from './certificate-metrics.ts';
import { AUTHORITY_SECRET, wantedCertificates } from './certificate-names.ts';
import type { CertificateSettings } from './certificate-settings.ts';
import type { CertificateProblem, CertificatesReport } from './certificates-report.ts';
import { inspectCertificates } from './external-certificates.ts';
import { RetainedAuthorities } from './retained-authorities.ts';
import { OwnCertificates } from './own-certificates.ts';
import { arePublished, publishedAuthorities } from './published-authorities.ts';
import type { ParsedCertificate } from './parsed-certificate.ts';
import { type Secret, SECRETS } from './secret.ts';

/** The PolicyServers that need certificates. */
interface CertifiedServers {
  names(): readonly string[];
  /** Calls the listener when the names may have changed. @returns a function that unsubscribes */
  subscribe(listener: () => void): () => void;
}

export interface CertificateControllerOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** The namespace of the product, with the Secrets. */
  readonly namespace: string;
  /** `own`: this controller issues certificates. `external`: another issuer writes the Secrets; they are only inspected. */
  readonly mode: 'own' | 'external';
  readonly policyServers: CertifiedServers;
  readonly settings: CertificateSettings;
  readonly events: EventSink;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** For metrics of certificates. Default: no metrics. */
  readonly registry?: Registry;
  readonly clock?: Clock;
}

/**
 * Issues and renews the certificates of an installation, or inspects those of another issuer; see docs/certificates.md. One
 * leader runs it. The bundle is known only while it runs, since a former leader's may be outdated.
 */
export class CertificateController implements Runnable, CertificateBundle {
  readonly name = 'certificates';
  readonly #options: CertificateControllerOptions;
  readonly #log: Logger;
  readonly #controller: Controller;
  readonly #own: OwnCertificates | undefined;
  readonly #retained: RetainedAuthorities;
  readonly #secrets: ObjectCache<Secret>;
  readonly #configurations: readonly ObjectCache<WebhookConfiguration>[];
  readonly #listeners = new Set<() => void>();
  readonly #metrics: CertificateMetrics | undefined;
  readonly #firstPass = Promise.withResolvers<void>();
  readonly #key: { readonly namespace: string; readonly name: string };
  #isRotating = false;
  /** The result of the last pass; undefined before the first one. */
  #state: Pick<CertificatesReport, 'bundle' | 'problems'> | undefined;

  constructor(options: CertificateControllerOptions) {
    this.#options = options;
    const { cluster, caches, namespace, settings, mode, registry, metrics, clock = SYSTEM_CLOCK } = options;
    this.#log = options.log.child({ component: this.name });
    this.#key = { namespace, name: AUTHORITY_SECRET };
    this.#metrics = registry === undefined ? undefined : new CertificateMetrics(registry);
    const now = (): number => clock.date();
    this.#retained = new RetainedAuthorities(settings.overlapMs);
    this.#own = mode === 'own' ? new OwnCertificates({ cluster, namespace, settings, now, log: this.#log }) : undefined;
    this.#configurations = [VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS].map((type) =>
      caches.cache(type, { labelSelector: MANAGED_BY_SELECTOR }),
    );
    // Excludes releases of Helm, which are Secrets of up to a megabyte each.
    this.#secrets = caches.cache(SECRETS, {
      namespace,
      ...(mode === 'own' ? { labelSelector: MANAGED_BY_SELECTOR } : { fieldSelector: 'type!=helm.sh/release.v1' }),
    });
    const secrets = watch(this.#secrets, { keys: (secret) => (this.#concerns(secret) ? [this.#key] : []) });
    const configurations = this.#configurations.map((cache) =>
      watch(cache, { keys: () => (this.#isRotating ? [this.#key] : []) }),
    );
    this.#controller = new Controller({
      name: this.name,
      reconcile: (_key, signal, attempt) => this.#reconcile(signal, attempt),
      watches: [secrets, ...configurations],
      events: { sink: options.events, of: () => this.#secret(AUTHORITY_SECRET) },
      log: options.log,
      clock,
      ...(metrics === undefined ? {} : { metrics }),
    });
  }

  /** Resolves after the first pass. */
  get ready(): Promise<void> {
    return this.#firstPass.promise;
  }

  bundle(): string | undefined {
    return this.#state?.bundle;
  }

  /** Whether there was a pass since this process became leader. */
  get isKnown(): boolean {
    return this.#state !== undefined;
  }

  /** Calls the listener after changes of {@link bundle}, {@link isKnown} and {@link problems}. @returns a function that unsubscribes */
  subscribe(listener: () => void): () => void {
    // A new function, so that one listener can subscribe twice.
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Problems found by the last pass, which users have to solve. */
  get problems(): readonly CertificateProblem[] {
    return this.#state?.problems ?? [];
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const unsubscribe = this.#options.policyServers.subscribe(() => this.#controller.enqueue(this.#key));
    try {
      const running = this.#controller.start(signal);
      await Promise.race([this.#controller.ready, aborted(signal), running]);
      // No watch event reports a missing Secret.
      this.#controller.enqueue(this.#key);
      await running;
    } finally {
      unsubscribe();
      this.#own?.forget();
      this.#retained.forget();
      this.#publish(undefined);
      this.#metrics?.forget();
    }
  }

  async #reconcile(signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    return await withStatus(
      attempt,
      (failure) => {
        this.#publishFailure(failure);
        return Promise.resolve({});
      },
      async () => {
        const report = await this.#pass(signal);
        this.#isRotating = report.phase !== 'Stable';
        this.#emit(report);
        this.#publish({ bundle: report.bundle, problems: report.problems });
        this.#firstPass.resolve();
        const failure = worstFailure(report.failures);
        if (failure !== undefined) {
          throw failure;
        }
        return { requeueAfterMs: report.requeueAfterMs };
      },
    );
  }

  /** Reports a failed pass as a problem of the CA's Secret, because what is known of it may be outdated. */
  #publishFailure(failure: Readiness | undefined): void {
    if (failure !== undefined && this.problems.length === 0) {
      const message = `certificates could not be checked: ${failure.message}`;
      const problem = { secret: AUTHORITY_SECRET, reason: 'CertificatesNotKept', message } as const;
      this.#publish({ bundle: this.bundle(), problems: [problem] });
    }
  }

  #pass(signal: AbortSignal): Promise<CertificatesReport> {
    const { cluster, namespace, policyServers, clock = SYSTEM_CLOCK } = this.#options;
    const names = policyServers.names();
    const configurations = (): readonly WebhookConfiguration[] => this.#configurations.flatMap((cache) => cache.list());
    if (this.#own === undefined) {
      const published = (): readonly ParsedCertificate[] => publishedAuthorities(configurations());
      const now = (): number => clock.date();
      return inspectCertificates({ cluster, namespace, retained: this.#retained, published, now }, names, signal);
    }
    const isPublished = arePublished(configurations());
    return this.#own.pass({ policyServers: names, isLeading: true, isPublished }, signal);
  }

  #emit(report: CertificatesReport): void {
    const { events } = this.#options;
    this.#metrics?.update(report);
    for (const { secret, type, reason, message } of report.events) {
      events.event(this.#secret(secret), type, reason, message);
    }
    const isNew = (problem: CertificateProblem): boolean =>
      !this.problems.some((known) => isDeepStrictEqual(known, problem));
    for (const problem of report.problems.filter(isNew)) {
      const { secret, reason, message } = problem;
      this.#log.warn({ secret, reason, detail: message }, 'a certificate needs attention');
      events.event(this.#secret(secret), 'Warning', reason, message);
    }
  }

  #publish(found: Pick<CertificatesReport, 'bundle' | 'problems'> | undefined): void {
    if (isDeepStrictEqual(found, this.#state)) {
      return;
    }
    this.#state = found;
    for (const listener of this.#listeners) {
      listener();
    }
  }

  /** Whether a Secret is one of ours. In `own` mode, all watched Secrets are. */
  #concerns({ metadata }: KubernetesObject): boolean {
    const { mode, namespace, policyServers } = this.#options;
    return (
      mode === 'own' ||
      wantedCertificates(namespace, policyServers.names()).some(({ secret }) => secret === metadata.name)
    );
  }

  /** The subject of events: a Secret that may be missing. */
  #secret(name: string): KubernetesObject {
    const { namespace } = this.#options;
    const known = this.#secrets.get({ namespace, name });
    return { apiVersion: 'v1', kind: 'Secret', metadata: known?.metadata ?? { namespace, name } };
  }
}
