// Names in certificates of control ports: what their holders may ask for.
import type { X509Certificate } from 'node:crypto';
import { CONTROL_NAME } from './replica-protocol.ts';

/** The name by which a certificate belongs to controllers. */
export const CONTROLLER_CONTROL_NAME = `controller.${CONTROL_NAME}`;
const POLICY_SERVER_SUFFIX = `.policy-server.${CONTROL_NAME}`;
/** One entry of a certificate's alternative names. Node quotes entries that could be mistaken for several. */
const DNS_ENTRY = /^DNS:([a-z0-9.-]+)$/;

/** The name by which a certificate belongs to the replicas of a PolicyServer. */
export function policyServerControlName(policyServer: string): string {
  return `${policyServer}${POLICY_SERVER_SUFFIX}`;
}

type Named = Pick<X509Certificate, 'subjectAltName'>;

/** Who calls a control port, by its certificate. */
export interface ControlPeer {
  readonly isController: boolean;
  /** The PolicyServers that it is a replica of. */
  readonly policyServers: readonly string[];
}

/**
 * A certificate that says no more than that it is for control ports is one of a controller only where the port's own certificate
 * says no more either. Else the issuer names holders, and the certificate is from a time before it did.
 * @param own the certificate of the port
 */
export function controlPeer(certificate: Named, own: Named): ControlPeer {
  const policyServers = policyServersOf(certificate);
  const isUnnamed = policyServers.length === 0 && !hasFurtherName(own);
  return { isController: isUnnamed || namesOf(certificate).includes(CONTROLLER_CONTROL_NAME), policyServers };
}

/** Whether a certificate says more than that it is for control ports. */
export function hasFurtherName(certificate: Named): boolean {
  return policyServersOf(certificate).length > 0 || namesOf(certificate).includes(CONTROLLER_CONTROL_NAME);
}

/** The PolicyServers whose replicas a certificate belongs to. */
export function policyServersOf(certificate: Named): readonly string[] {
  return namesOf(certificate)
    .filter((name) => name.endsWith(POLICY_SERVER_SUFFIX))
    .map((name) => name.slice(0, -POLICY_SERVER_SUFFIX.length));
}

function namesOf({ subjectAltName = '' }: Named): readonly string[] {
  return subjectAltName.split(', ').flatMap((entry) => DNS_ENTRY.exec(entry)?.[1] ?? []);
}
