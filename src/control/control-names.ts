// Names in certificates of control ports: what their holders may ask for.
import type { X509Certificate } from 'node:crypto';
import { CONTROL_NAME } from './replica-protocol.ts';

const POLICY_SERVER_SUFFIX = `.policy-server.${CONTROL_NAME}`;
/** One entry of a certificate's alternative names. Node quotes entries that could be mistaken for several. */
const DNS_ENTRY = /^DNS:([a-z0-9.-]+)$/;

/** The name by which a certificate belongs to the replicas of a PolicyServer. */
export function policyServerControlName(policyServer: string): string {
  return `${policyServer}${POLICY_SERVER_SUFFIX}`;
}

/** The PolicyServers whose replicas a certificate belongs to; none for those of controllers. */
export function policyServersOf({ subjectAltName = '' }: Pick<X509Certificate, 'subjectAltName'>): readonly string[] {
  return subjectAltName
    .split(', ')
    .flatMap((entry) => DNS_ENTRY.exec(entry)?.[1] ?? [])
    .filter((name) => name.endsWith(POLICY_SERVER_SUFFIX))
    .map((name) => name.slice(0, -POLICY_SERVER_SUFFIX.length));
}
