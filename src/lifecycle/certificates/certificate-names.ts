// Which Secrets hold which certificates, and what those are for.
import { CONTROL_NAME } from '../../control/index.ts';
import { policyServerLabels, policyServerObjectName } from '../policy-servers/policy-server-names.ts';

/** The Secret of the CA, with its key. */
export const AUTHORITY_SECRET = 'portcullis-ca';
/** The Service of the controller, and what the names of its Secrets begin with. */
export const CONTROLLER_SERVICE = 'portcullis-controller';
/** The certificate of the webhook for our own kinds. */
export const CONTROLLER_WEBHOOK_SECRET = `${CONTROLLER_SERVICE}-webhook`;
/** The certificate that the controller calls control ports with. */
export const CONTROLLER_CONTROL_SECRET = `${CONTROLLER_SERVICE}-control`;

/** The domain that Services of most clusters are in. */
const CLUSTER_DOMAIN = 'cluster.local';

/** A Secret that a certificate is to be in, and what that is for. */
export interface WantedCertificate {
  /** `metadata.name` of the Secret. */
  readonly secret: string;
  /** The PolicyServer whose it is; absent: the controller's. */
  readonly policyServer?: string;
  readonly dnsNames: readonly string[];
  readonly usages: readonly ('serverAuth' | 'clientAuth')[];
}

/** The Secrets of a PolicyServer: what it answers reviews with, and what its control ports have. */
export function policyServerSecrets(policyServer: string): { readonly webhook: string; readonly control: string } {
  const service = policyServerObjectName(policyServer);
  return { webhook: `${service}-webhook`, control: `${service}-control` };
}

/** The certificates of the controller and of PolicyServers. */
export function wantedCertificates(namespace: string, policyServers: Iterable<string>): readonly WantedCertificate[] {
  const controller: readonly WantedCertificate[] = [
    webhook(CONTROLLER_WEBHOOK_SECRET, CONTROLLER_SERVICE, namespace),
    control(CONTROLLER_CONTROL_SECRET),
  ];
  const servers = [...new Set(policyServers)].toSorted().flatMap((policyServer): readonly WantedCertificate[] => {
    const secrets = policyServerSecrets(policyServer);
    return [
      { ...webhook(secrets.webhook, policyServerObjectName(policyServer), namespace), policyServer },
      { ...control(secrets.control), policyServer },
    ];
  });
  return [...controller, ...servers];
}

/** Labels of the Secret of a certificate, besides those of everything that we write. */
export function labelsOf({ policyServer }: WantedCertificate): Readonly<Record<string, string>> {
  return policyServer === undefined
    ? { 'app.kubernetes.io/component': 'controller' }
    : policyServerLabels(policyServer);
}

/** The names by which a Service is called from anywhere in the cluster; API servers call `<service>.<namespace>.svc`. */
function webhook(secret: string, service: string, namespace: string): WantedCertificate {
  const host = `${service}.${namespace}`;
  return { secret, dnsNames: [`${host}.svc`, `${host}.svc.${CLUSTER_DOMAIN}`, host], usages: ['serverAuth'] };
}

/** For both sides of a connection to a control port. */
function control(secret: string): WantedCertificate {
  return { secret, dnsNames: [CONTROL_NAME], usages: ['serverAuth', 'clientAuth'] };
}
