// Names of the Secrets of certificates, and the purposes of these certificates.
import { CONTROL_NAME, CONTROLLER_CONTROL_NAME, policyServerControlName } from '../../control/index.ts';
import { policyServerLabels, policyServerObjectName } from './policy-server-names.ts';

/** The Secret of the CA, with its key. */
export const AUTHORITY_SECRET = 'portcullis-ca';
/** The Service of the controller, and the prefix of its Secrets. */
export const CONTROLLER_SERVICE = 'portcullis-controller';
/** The certificate of the webhook for our own kinds. */
export const CONTROLLER_WEBHOOK_SECRET = `${CONTROLLER_SERVICE}-webhook`;
/** The client certificate of the controller for control ports. */
export const CONTROLLER_CONTROL_SECRET = `${CONTROLLER_SERVICE}-control`;

/** The cluster domain of most clusters. */
const CLUSTER_DOMAIN = 'cluster.local';

/** A certificate that the installation needs, and its Secret. */
export interface WantedCertificate {
  /** `metadata.name` of the Secret. */
  readonly secret: string;
  /** The PolicyServer that uses it. Default: the controller does. */
  readonly policyServer?: string;
  readonly dnsNames: readonly string[];
  readonly usages: readonly ('serverAuth' | 'clientAuth')[];
}

/** The Secrets of a PolicyServer, for its admission ports and its control ports. */
export function policyServerSecrets(policyServer: string): { readonly webhook: string; readonly control: string } {
  const service = policyServerObjectName(policyServer);
  return { webhook: `${service}-webhook`, control: `${service}-control` };
}

/** The certificates of the controller and of PolicyServers. */
export function wantedCertificates(namespace: string, policyServers: Iterable<string>): readonly WantedCertificate[] {
  const controller: readonly WantedCertificate[] = [
    webhook(CONTROLLER_WEBHOOK_SECRET, CONTROLLER_SERVICE, namespace),
    control(CONTROLLER_CONTROL_SECRET, CONTROLLER_CONTROL_NAME),
  ];
  const servers = [...new Set(policyServers)].toSorted().flatMap((policyServer): readonly WantedCertificate[] => {
    const secrets = policyServerSecrets(policyServer);
    return [
      { ...webhook(secrets.webhook, policyServerObjectName(policyServer), namespace), policyServer },
      { ...control(secrets.control, policyServerControlName(policyServer)), policyServer },
    ];
  });
  return [...controller, ...servers];
}

/** Labels of the Secret of a certificate, besides `MANAGED_BY`. */
export function labelsOf({ policyServer }: WantedCertificate): Readonly<Record<string, string>> {
  return policyServer === undefined
    ? { 'app.kubernetes.io/component': 'controller' }
    : policyServerLabels(policyServer);
}

/** All DNS names of a Service in the cluster. API servers use `<service>.<namespace>.svc`. */
function webhook(secret: string, service: string, namespace: string): WantedCertificate {
  const host = `${service}.${namespace}`;
  return { secret, dnsNames: [`${host}.svc`, `${host}.svc.${CLUSTER_DOMAIN}`, host], usages: ['serverAuth'] };
}

/** A certificate for both ends of connections to control ports, with the rights of a further name. */
function control(secret: string, name: string): WantedCertificate {
  return { secret, dnsNames: [CONTROL_NAME, name], usages: ['serverAuth', 'clientAuth'] };
}
