// Kinds of Open Cluster Management that may be templates of a Policy there, and that are not evaluated here.
import {
  CERTIFICATE_POLICIES,
  CONFIGURATION_POLICIES,
  GOVERNANCE_GROUP,
  groupVersionOf,
} from '../../resources/index.ts';

const UNSUPPORTED: ReadonlySet<string> = new Set(['OperatorPolicy', 'IamPolicy']);

/** Why a kind of Open Cluster Management cannot be a template; undefined for all others. */
export function unsupportedKind(apiVersion: string, kind: string): string | undefined {
  const supported = [CONFIGURATION_POLICIES, CERTIFICATE_POLICIES].map((one) => one.kind).join(' and ');
  return groupVersionOf(apiVersion).group === GOVERNANCE_GROUP && UNSUPPORTED.has(kind)
    ? `${kind} is not supported yet: Portcullis evaluates ${supported}. Say in a ConfigurationPolicy which objects the cluster must have`
    : undefined;
}
