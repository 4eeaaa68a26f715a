import type { KubernetesObject } from '../../../resources/index.ts';
import { CONTROL_NAME } from '../../../control/index.ts';
import { componentLabels, CONTROLLER, DEFAULT_POLICY_SERVER, type InstallContext } from './naming.ts';

/** How long they live, and how long before the end they are renewed. */
const DURATION = '2160h';
const RENEW_BEFORE = '720h';

/**
 * cert-manager's Certificates of the Secrets that the controller only reads then. A PolicyServer of another name needs two of
 * its own kind.
 */
export function certManagerCertificates({ namespace, values }: InstallContext): readonly KubernetesObject[] {
  const certificate = (
    secretName: string,
    dnsNames: readonly string[],
    usages: readonly string[],
  ): KubernetesObject => ({
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    metadata: { name: secretName, namespace, labels: componentLabels('certificates') },
    spec: {
      secretName,
      dnsNames,
      duration: DURATION,
      renewBefore: RENEW_BEFORE,
      privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
      usages: ['digital signature', ...usages],
      issuerRef: values.certificates.certManager.issuer,
    },
  });
  return [CONTROLLER, `policy-server-${DEFAULT_POLICY_SERVER}`].flatMap((service) => [
    certificate(
      `${service}-webhook`,
      [`${service}.${namespace}.svc`, `${service}.${namespace}.svc.cluster.local`],
      ['server auth'],
    ),
    // Both sides of a control connection are this one name.
    certificate(`${service}-control`, [CONTROL_NAME], ['server auth', 'client auth']),
  ]);
}
