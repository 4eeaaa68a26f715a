// The parts of a controller that manages the pods, Services and certificates of policy servers.
import { join } from 'node:path';
import { Gauge } from 'prom-client';
import {
  CertificateController,
  type CertificateSettings,
  CONTROLLER_CONTROL_SECRET,
  CONTROLLER_SERVICE,
  CONTROLLER_WEBHOOK_SECRET,
  kubewardenFinalizer,
  PolicyServerObjectsController,
  PolicyServerOwnership,
  type ServiceReachability,
  ReachableServices,
  SecretFiles,
  servedCertificateFault,
  POLICY_SERVER_SERVICE_PORT as SERVICE_PORT,
  tenantModuleHosts,
  tenantModules,
  type WebhookTarget,
} from '../lifecycle/index.ts';
import { POLICY_SERVER_PREFIX, policyServerObjectName } from '../lifecycle/access-rules/index.ts';
import { tenantCapabilities } from '../lifecycle/grants/index.ts';
import { AUDITOR_ACCOUNT, POLICY_SERVERS, type PolicyServerObject } from '../resources/index.ts';
import { type ControlledCluster, type ObjectCache, type Runnable, withWriteBackoff } from '../runtime/index.ts';
import type { ControlTls } from '../control/index.ts';
import type { TlsFiles } from '../https/index.ts';

/** What is managed, without the controller's own files. */
export interface ManagedSettings {
  /** The image of pods whose PolicyServer names an image of Kubewarden. */
  readonly image: string;
  /** The address that pods listen on. */
  readonly listenAddress: string;
  /** Who writes the Secrets with certificates: the controller (`own`), or another program, such as cert-manager. */
  readonly certificates: 'own' | 'external';
  /** Folder for the controller's own certificates; undefined: a temporary one. */
  readonly certificatesDir: string | undefined;
  readonly lifetimes: CertificateSettings;
}

export interface ManagedOptions extends ManagedSettings {
  /** Folder for the controller's own certificates. */
  readonly certificatesDir: string;
}

/** The paths of the controller's certificates. */
export function certificateFiles(folder: string): { readonly control: ControlTls; readonly webhook: TlsFiles } {
  const [control, webhook] = [join(folder, 'control'), join(folder, 'webhook')];
  return {
    control: { certFile: join(control, 'tls.crt'), keyFile: join(control, 'tls.key'), caFile: join(control, 'ca.crt') },
    webhook: { certFile: join(webhook, 'tls.crt'), keyFile: join(webhook, 'tls.key') },
  };
}

/** The Service of the webhook for our own kinds. */
export function controllerService(namespace: string): {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
} {
  return { namespace, name: CONTROLLER_SERVICE, port: SERVICE_PORT };
}

/** Users that are exempt from policies, so that Portcullis can repair a policy server that is down. */
export function productIdentities(namespace: string): readonly string[] {
  return [CONTROLLER_SERVICE, AUDITOR_ACCOUNT, `${POLICY_SERVER_PREFIX}*`].map((name) =>
    serviceAccountUser(namespace, name),
  );
}

/** The username of a service account. */
export function serviceAccountUser(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

export class ManagedServers {
  readonly ownership: PolicyServerOwnership;
  readonly certificates: CertificateController;
  readonly objects: PolicyServerObjectsController;
  /** Whether API servers reach the controllers. A controller outside of our Deployment counts as reachable. */
  readonly reached: ServiceReachability;
  readonly #services: ReachableServices;
  readonly #policyServers: ObjectCache<PolicyServerObject>;
  /** Write the controller's own certificates to files, before other parts start. */
  readonly files: readonly Runnable[];
  readonly #namespace: string;

  constructor(options: ManagedOptions, shared: ControlledCluster & { readonly namespace: string }) {
    const { certificates: mode, certificatesDir, image, listenAddress, lifetimes } = options;
    const { caches, cluster, namespace, log, registry } = shared;
    this.#namespace = namespace;
    this.ownership = new PolicyServerOwnership({ caches, namespace });
    this.#services = new ReachableServices({ caches, namespace });
    this.#policyServers = caches.cache(POLICY_SERVERS);
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
    // Of every controller, because one that waits for its certificates never leads.
    const current = new Gauge({
      name: 'portcullis_certificate_files_current',
      help: 'Whether a process uses the certificates of its Secret: 0 where those are missing or invalid',
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
   * More users that are exempt from policies now: the service accounts that PolicyServers name. Users who may write PolicyServers
   * can run pods as any service account of the product's namespace anyway, also as the controller's.
   */
  identities(): readonly string[] {
    const named = this.ownership.serviceAccounts().filter((name) => !name.startsWith(POLICY_SERVER_PREFIX));
    return named.map((name) => serviceAccountUser(this.#namespace, name));
  }

  /** Hosts for modules of namespaced policies. Undefined if the PolicyServer does not exist, or is not ours. */
  tenantHosts(policyServer: string): readonly string[] | undefined {
    const server = this.#ours(policyServer);
    return server && tenantModuleHosts(server.metadata.annotations);
  }

  /** Modules of namespaced policies besides builtin ones. Undefined if the PolicyServer does not exist, or is not ours. */
  tenantModules(policyServer: string): readonly string[] | undefined {
    const server = this.#ours(policyServer);
    return server && tenantModules(server);
  }

  /** Host capabilities of namespaced policies. Undefined if the PolicyServer does not exist, or is not ours. */
  tenantCapabilities(policyServer: string): readonly string[] | undefined {
    const server = this.#ours(policyServer);
    return server && tenantCapabilities(server);
  }

  /** See {@link kubewardenFinalizer}. */
  kubewardenFinalizer(policyServer: string): string | undefined {
    const server = this.#policyServers.get({ name: policyServer });
    return server && kubewardenFinalizer(server);
  }

  #ours(policyServer: string): PolicyServerObject | undefined {
    return this.ownership.isOurs(policyServer) ? this.#policyServers.get({ name: policyServer }) : undefined;
  }

  isReachable(policyServer: string): boolean {
    return this.#services.isReachable(policyServerObjectName(policyServer));
  }

  /** The webhook address of a policy server; undefined until its CA is known. */
  target(policyServer: string): WebhookTarget | undefined {
    const ca = this.certificates.bundle();
    const name = policyServerObjectName(policyServer);
    return ca === undefined ? undefined : { service: { namespace: this.#namespace, name, port: SERVICE_PORT }, ca };
  }
}
