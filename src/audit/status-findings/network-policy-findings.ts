// Findings of NetworkPolicies: what their NetworkPolicyStatus says of what providers do with them.
import {
  type FeatureEntry,
  NETWORK_POLICY_STATUS_MANAGER,
  type NetworkPolicyStatus,
  type ProviderEntry,
} from '../../resources/index.ts';
import type { AuditedObject } from '../audit-result.ts';
import type { AuditFinding } from '../finding.ts';

type FindingEntry = Pick<FeatureEntry, 'type' | 'message' | 'paths'>;

/** The names under which verdicts on NetworkPolicies are reported. */
const SUPPORT = 'netpol/support';
const LIMITS = 'netpol/limits';
const ADVICE = 'netpol/advice';
/** All of them. */
export const NETWORK_POLICY_FINDINGS = [SUPPORT, LIMITS, ADVICE] as const;

/** The findings of a NetworkPolicyStatus. Undefined: nothing was written about its NetworkPolicy as it is now. */
export function networkPolicyFindings(stored: NetworkPolicyStatus): readonly AuditFinding[] | undefined {
  const { status } = stored;
  const owner = stored.metadata.ownerReferences?.find(({ kind }) => kind === 'NetworkPolicy');
  if (owner === undefined || status?.observedGeneration === undefined) {
    return undefined;
  }
  const { name = '', namespace = '', uid = '' } = stored.metadata;
  const object: AuditedObject = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    name,
    namespace,
    uid: owner.uid,
  };
  const finding = (policy: string, rule: string, message: string): AuditFinding => ({
    policy,
    policyId: `${policy}/${namespace}/${name}`,
    policyUid: uid,
    rule,
    mode: 'protect',
    result: 'fail',
    object,
    message,
  });
  return [
    ...(status.providers ?? []).flatMap((provider) => ofProvider(provider, finding)),
    ...(status.findings ?? []).map((entry): AuditFinding => ({
      ...finding(ADVICE, entry.type, withPaths(entry)),
      mode: 'monitor',
    })),
  ];
}

/** What is not supported fails, what is not known is an error, and what depends on the cluster is a warning. */
function ofProvider(
  { name, controllerName, version, reporter, features = [], warnings = [] }: ProviderEntry,
  finding: (policy: string, rule: string, message: string) => AuditFinding,
): readonly AuditFinding[] {
  const provider = name ?? controllerName;
  // Our own messages name the provider.
  const who =
    reporter === NETWORK_POLICY_STATUS_MANAGER
      ? ''
      : `${version === undefined ? provider : `${provider} ${version}`}: `;
  return [
    ...features
      .filter(({ status }) => status !== 'True')
      .map((feature): AuditFinding => {
        const one = finding(SUPPORT, `${provider}/${feature.type}`, `${who}${effectOf(feature)}${withPaths(feature)}`);
        return feature.status === 'False' ? one : { ...one, result: 'error' };
      }),
    ...warnings.map(({ type, message }): AuditFinding => ({
      ...finding(LIMITS, `${provider}/${type}`, `${who}${message}`),
      mode: 'monitor',
    })),
  ];
}

function effectOf({ effect }: FeatureEntry): string {
  return effect === undefined ? '' : `${effect}: `;
}

function withPaths({ message, paths = [] }: FindingEntry): string {
  return paths.length === 0 ? message : `${message} (${paths.join(', ')})`;
}
