// What a controller has that makes the pods, Services and certificates of policy servers itself.
import { join } from 'node:path';
import type { Registry } from 'prom-client';
import type { Cluster } from '../../cluster/index.ts';
import {
  CertificateController,
  CONTROLLER_CONTROL_SECRET,
  CONTROLLER_SERVICE,
  CONTROLLER_WEBHOOK_SECRET,
  PolicyServerObjectsController,
  policyServerObjectName,
  PolicyServerOwnership,
  SecretFiles,
  POLICY_SERVER_SERVICE_PORT as SERVICE_PORT,
  type WebhookTarget,
} from '../../lifecycle/index.ts';
import type { EventSink, Runnable, RuntimeMetrics, SharedCaches } from '../../runtime/index.ts';
import type { ControlTls, Logger, TlsFiles } from '../../server/index.ts';
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
  const user = (name: string): string => `system:serviceaccount:${namespace}:${name}`;
  return [user(CONTROLLER_SERVICE), user('policy-server-*')];
}

/** Parts of a controller. */
export class ManagedServers {
  readonly ownership: PolicyServerOwnership;
  readonly certificates: CertificateController;
  readonly objects: PolicyServerObjectsController;
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
    const { certificates: mode, certificatesDir, image, lifetimes } = options;
    const { caches, cluster, namespace, log } = shared;
    this.#namespace = namespace;
    this.ownership = new PolicyServerOwnership({ caches, namespace });
    this.certificates = new CertificateController({
      ...shared,
      mode,
      settings: lifetimes,
      policyServers: this.ownership,
    });
    this.objects = new PolicyServerObjectsController({
      ...shared,
      settings: { namespace, image },
      certificates: this.certificates,
    });
    this.files = [
      { secret: CONTROLLER_WEBHOOK_SECRET, folder: join(certificatesDir, 'webhook') },
      { secret: CONTROLLER_CONTROL_SECRET, folder: join(certificatesDir, 'control') },
    ].map((one) => new SecretFiles({ ...one, cluster, namespace, log }));
  }

  /** Where API servers reach a policy server; undefined until it is known whom they are to trust. */
  target(policyServer: string): WebhookTarget | undefined {
    const ca = this.certificates.bundle();
    const name = policyServerObjectName(policyServer);
    return ca === undefined ? undefined : { service: { namespace: this.#namespace, name, port: SERVICE_PORT }, ca };
  }
}
