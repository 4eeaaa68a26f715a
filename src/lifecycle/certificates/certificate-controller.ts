import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Cluster } from '../../cluster/index.ts';
import type { KubernetesObject, Readiness } from '../../resources/index.ts';
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
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '../policy-kinds.ts';
import type { WebhookConfiguration } from '../webhooks/webhook-object.ts';
import type { CertificateBundle } from './certificate-bundle.ts';
import { CertificateMetrics } from './certificate-metrics.ts';
import { AUTHORITY_SECRET, wantedCertificates } from './certificate-names.ts';
import type { CertificateSettings } from './certificate-settings.ts';
import type { CertificateProblem, CertificatesReport } from './certificates-report.ts';
import { lookAtCertificates } from './external-certificates.ts';
import { KeptAuthorities } from './kept-authorities.ts';
import { MANAGED_BY_SELECTOR } from '../managed-by.ts';
import { OwnCertificates } from './own-certificates.ts';
import { areTold, toldAuthorities } from './told-authorities.ts';
import type { ParsedCertificate } from './parsed-certificate.ts';
import { type Secret, SECRETS } from './secret.ts';

/** The PolicyServers whose certificates are kept. */
export interface CertifiedServers {
  names(): readonly string[];
  /** Tells that names may differ. Returns what ends it. */
  subscribe(listener: () => void): () => void;
}

export interface CertificateControllerOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** Of the product: where the Secrets are. */
  readonly namespace: string;
  /** `own`: certificates are made here. `external`: others keep the Secrets, which are only looked at. */
  readonly mode: 'own' | 'external';
  readonly policyServers: CertifiedServers;
  readonly settings: CertificateSettings;
  readonly events: EventSink;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Where certificates are told of. Default: nowhere. */
  readonly registry?: Registry;
  readonly clock?: Clock;
}

/**
 * Keeps the certificates of an installation, or watches over those that others keep; see docs/certificates.md. One leader runs
 * it. What API servers are to trust is known while it runs: what a process knew when it led before may be long out of date.
 */
export class CertificateController implements Runnable, CertificateBundle {
  readonly name = 'certificates';
  readonly #options: CertificateControllerOptions;
  readonly #log: Logger;
  readonly #controller: Controller;
  readonly #own: OwnCertificates | undefined;
  readonly #kept: KeptAuthorities;
  readonly #secrets: ObjectCache<Secret>;
  readonly #configurations: readonly ObjectCache<WebhookConfiguration>[];
  readonly #listeners = new Set<() => void>();
  readonly #metrics: CertificateMetrics | undefined;
  readonly #looked = Promise.withResolvers<void>();
  readonly #key: { readonly namespace: string; readonly name: string };
  #isRotating = false;
  /** What the last look found; undefined until there was one. */
  #found: Pick<CertificatesReport, 'bundle' | 'problems'> | undefined;

  constructor(options: CertificateControllerOptions) {
    this.#options = options;
    const { cluster, caches, namespace, settings, mode, registry, metrics, clock = SYSTEM_CLOCK } = options;
    this.#log = options.log.child({ component: this.name });
    this.#key = { namespace, name: AUTHORITY_SECRET };
    this.#metrics = registry === undefined ? undefined : new CertificateMetrics(registry);
    const now = (): number => clock.date();
    this.#kept = new KeptAuthorities(settings.overlapMs);
    this.#own = mode === 'own' ? new OwnCertificates({ cluster, namespace, settings, now, log: this.#log }) : undefined;
    this.#configurations = [VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS].map((type) =>
      caches.cache(type, { labelSelector: MANAGED_BY_SELECTOR }),
    );
    // Releases of Helm are Secrets, too, of up to a megabyte each.
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

  /** Resolves when certificates were looked at for the first time. */
  get ready(): Promise<void> {
    return this.#looked.promise;
  }

  bundle(): string | undefined {
    return this.#found?.bundle;
  }

  /** Whether certificates were looked at since this process leads. */
  get isKnown(): boolean {
    return this.#found !== undefined;
  }

  /** Tells of changes of {@link bundle}, {@link isKnown} and {@link problems}. Returns what ends it. */
  subscribe(listener: () => void): () => void {
    // A function of its own, so that one listener may subscribe twice.
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** What somebody has to do something about, as of the last look. */
  get problems(): readonly CertificateProblem[] {
    return this.#found?.problems ?? [];
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const unsubscribe = this.#options.policyServers.subscribe(() => this.#controller.enqueue(this.#key));
    try {
      const running = this.#controller.start(signal);
      await Promise.race([this.#controller.ready, aborted(signal), running]);
      // Nothing tells of what is not there.
      this.#controller.enqueue(this.#key);
      await running;
    } finally {
      unsubscribe();
      this.#own?.forget();
      this.#kept.forget();
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
        const report = await this.#look(signal);
        this.#isRotating = report.phase !== 'Stable';
        this.#tell(report);
        this.#publish({ bundle: report.bundle, problems: report.problems });
        this.#looked.resolve();
        const failure = worstFailure(report.failures);
        if (failure !== undefined) {
          throw failure;
        }
        return { requeueAfterMs: report.lookAgainMs };
      },
    );
  }

  /** Certificates that could not even be read are a problem of the CA: what was known of it before may be out of date. */
  #publishFailure(failure: Readiness | undefined): void {
    if (failure !== undefined && this.problems.length === 0) {
      const message = `certificates could not be kept: ${failure.message}`;
      const problem = { secret: AUTHORITY_SECRET, reason: 'CertificatesNotKept', message } as const;
      this.#publish({ bundle: this.bundle(), problems: [problem] });
    }
  }

  #look(signal: AbortSignal): Promise<CertificatesReport> {
    const { cluster, namespace, policyServers, clock = SYSTEM_CLOCK } = this.#options;
    const names = policyServers.names();
    const configurations = (): readonly WebhookConfiguration[] => this.#configurations.flatMap((cache) => cache.list());
    if (this.#own === undefined) {
      const told = (): readonly ParsedCertificate[] => toldAuthorities(configurations());
      const now = (): number => clock.date();
      return lookAtCertificates({ cluster, namespace, kept: this.#kept, told, now }, names, signal);
    }
    const isTold = areTold(configurations());
    return this.#own.pass({ policyServers: names, isLeading: true, isTold }, signal);
  }

  #tell(report: CertificatesReport): void {
    const { events } = this.#options;
    this.#metrics?.told(report);
    for (const { secret, type, reason, message } of report.notices) {
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
    if (isDeepStrictEqual(found, this.#found)) {
      return;
    }
    this.#found = found;
    for (const listener of this.#listeners) {
      listener();
    }
  }

  /** Whether a Secret matters. In `own` mode all that are watched are ours. */
  #concerns({ metadata }: KubernetesObject): boolean {
    const { mode, namespace, policyServers } = this.#options;
    return (
      mode === 'own' ||
      wantedCertificates(namespace, policyServers.names()).some(({ secret }) => secret === metadata.name)
    );
  }

  /** What events are about: a Secret that may not be there. */
  #secret(name: string): KubernetesObject {
    const { namespace } = this.#options;
    const known = this.#secrets.get({ namespace, name });
    return { apiVersion: 'v1', kind: 'Secret', metadata: known?.metadata ?? { namespace, name } };
  }
}
