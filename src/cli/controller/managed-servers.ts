// What a controller has that makes the pods, Services and certificates of policy servers itself.
import { join } from 'node:path';
import { Gauge, type Registry } from 'prom-client';
import type { Cluster } from '../../cluster/index.ts';
import {
  CertificateController,
  CONTROLLER_CONTROL_SECRET,
  CONTROLLER_SERVICE,
  CONTROLLER_WEBHOOK_SECRET,
  POLICY_SERVER_PREFIX,
  PolicyServerObjectsController,
  policyServerObjectName,
  PolicyServerOwnership,
  type ServiceReachability,
  ReachableServices,
  SecretFiles,
  servedCertificateFault,
  POLICY_SERVER_SERVICE_PORT as SERVICE_PORT,
  type WebhookTarget,
} from '../../lifecycle/index.ts';
import {
  type EventSink,
  withWriteBackoff,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
} from '../../runtime/index.ts';
import type { ControlTls } from '../../control/index.ts';
import type { Logger } from '../../log/index.ts';
import type { TlsFiles } from '../../https/index.ts';
import type { ManagedSettings } from './managed-flags.ts';

/** How policy servers are managed. */
export interface ManagedOptions extends ManagedSettings {
  /** Folder for the controller's own certificates. */
  readonly certificatesDir: string;
}

/** Where the files of the controller's certificates are. */
export function certificateFiles(folder: string): { readonly control: ControlTls; readonly webhook: TlsFiles } {
  const [control, webhook] = [join(folder, 'control'), join(folder, 'webhook')];
  return {
    control: { certFile: join(control, 'tls.crt'), keyFile: join(control, 'tls.key'), caFile: join(control, 'ca.crt') },
    webhook: { certFile: join(webhook, 'tls.crt'), keyFile: join(webhook, 'tls.key') },
  };
}

/** The Service by which API servers reach the webhook for our own kinds. */
export function controllerService(namespace: string): {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
} {
  return { namespace, name: CONTROLLER_SERVICE, port: SERVICE_PORT };
}

/** Who is exempt from policies: what the product itself does must not wait for a policy server that is down. */
export function productIdentities(namespace: string): readonly string[] {
  return [CONTROLLER_SERVICE, `${POLICY_SERVER_PREFIX}*`].map((name) => serviceAccountUser(namespace, name));
}

/** As API servers call a service account. */
function serviceAccountUser(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** Parts of a controller. */
export class ManagedServers {
  readonly ownership: PolicyServerOwnership;
  readonly certificates: CertificateController;
  readonly objects: PolicyServerObjectsController;
  /** Whether API servers reach the controllers; one that runs elsewhere than in a Deployment of ours is trusted to be reached. */
  readonly reached: ServiceReachability;
  readonly #services: ReachableServices;
  /** Keep the controller's own certificates as files; others begin when those are there. */
  readonly files: readonly Runnable[];
  readonly #namespace: string;

  constructor(
    options: ManagedOptions,
    shared: {
      readonly cluster: Cluster;
      readonly caches: SharedCaches;
      readonly namespace: string;
      readonly events: EventSink;
      readonly log: Logger;
      readonly metrics: RuntimeMetrics;
      readonly registry: Registry;
    },
  ) {
    const { certificates: mode, certificatesDir, image, listenAddress, lifetimes } = options;
    const { caches, cluster, namespace, log, registry } = shared;
    this.#namespace = namespace;
    this.ownership = new PolicyServerOwnership({ caches, namespace });
    this.#services = new ReachableServices({ caches, namespace });
    this.reached = {
      isReachable: (service) => !this.#services.isDeployed(service) || this.#services.isReachable(service),
      subscribe: (listener) => this.#services.subscribe(listener),
    };
    this.certificates = new CertificateController({
      ...shared,
      mode,
      settings: lifetimes,
      policyServers: this.ownership,
    });
    this.objects = new PolicyServerObjectsController({
      ...shared,
      cluster: withWriteBackoff(cluster, { log }),
      settings: { namespace, image, listenAddress },
      certificates: this.certificates,
      certificateMode: mode,
    });
    const folders = { [CONTROLLER_WEBHOOK_SECRET]: 'webhook', [CONTROLLER_CONTROL_SECRET]: 'control' };
    const files = Object.entries(folders).map(([secret, name]) => {
      const folder = join(certificatesDir, name);
      return [
        secret,
        new SecretFiles({ secret, folder, fault: servedCertificateFault, cluster, namespace, log }),
      ] as const;
    });
    this.files = files.map(([, one]) => one);
    // Told by every controller, not only by the one that leads: one that waits for its certificates never does.
    const current = new Gauge({
      name: 'portcullis_certificate_files_current',
      help: 'Whether a process uses what is in a Secret of its own: 0 where that is missing or of no use',
      labelNames: ['secret'],
      registers: [],
      collect() {
        for (const [secret, { isCurrent }] of files) {
          this.set({ secret }, isCurrent ? 1 : 0);
        }
      },
    });
    registry.registerMetric(current);
  }

  /**
   * Who is exempt from policies besides `productIdentities`, now: those that policy servers run as whose PolicyServers name an
   * account. Whoever writes these can run anything in that namespace as any of its accounts, the controller's too.
   */
  identities(): readonly string[] {
    const named = this.ownership.serviceAccounts().filter((name) => !name.startsWith(POLICY_SERVER_PREFIX));
    return named.map((name) => serviceAccountUser(this.#namespace, name));
  }

  /** Whether API servers would reach a policy server. */
  isReachable(policyServer: string): boolean {
    return this.#services.isReachable(policyServerObjectName(policyServer));
  }

  /** Where API servers reach a policy server; undefined until it is known whom they are to trust. */
  target(policyServer: string): WebhookTarget | undefined {
    const ca = this.certificates.bundle();
    const name = policyServerObjectName(policyServer);
    return ca === undefined ? undefined : { service: { namespace: this.#namespace, name, port: SERVICE_PORT }, ca };
  }
}
