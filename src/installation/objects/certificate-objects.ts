import { DEFAULT_POLICY_SERVER, type KubernetesObject } from '../../resources/index.ts';
import { CONTROL_NAME, CONTROLLER_CONTROL_NAME, policyServerControlName } from '../../control/index.ts';
import { given } from './given.ts';
import { componentLabels, CONTROLLER, type InstallContext } from './naming.ts';

/** Lifetime of certificates, and how long before its end they are renewed. */
const DURATION = '2160h';
const RENEW_BEFORE = '720h';

/**
 * Certificates of cert-manager for the Secrets of the controller and the default PolicyServer. Users create two more for each
 * other PolicyServer.
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
      ...given({ issuerRef: values.certificates.certManager.issuer }),
    },
  });
  const services = [
    { service: CONTROLLER, controlNames: [CONTROL_NAME, CONTROLLER_CONTROL_NAME] },
    {
      service: `policy-server-${DEFAULT_POLICY_SERVER}`,
      controlNames: [CONTROL_NAME, policyServerControlName(DEFAULT_POLICY_SERVER)],
    },
  ];
  return services.flatMap(({ service, controlNames }) => [
    certificate(
      `${service}-webhook`,
      [`${service}.${namespace}.svc`, `${service}.${namespace}.svc.cluster.local`],
      ['server auth'],
    ),
    // Both ends of a control connection have this name.
    certificate(`${service}-control`, controlNames, ['server auth', 'client auth']),
  ]);
}
