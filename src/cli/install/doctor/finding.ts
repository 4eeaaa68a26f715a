// Findings of `portcullis doctor`. docs/install.md explains each code.

export type Severity = 'error' | 'info' | 'warning';

export interface Finding {
  readonly code: FindingCode;
  readonly severity: Severity;
  /** The object in kubectl's notation. */
  readonly where: string;
  /** The problem: expected and actual state. */
  readonly message: string;
  /** What to do. */
  readonly action: string;
}

/** All codes with their usual severity. */
export const FINDING_CODES = {
  ApiServerTooOld: 'error',
  KindMissing: 'error',
  KindDiffers: 'warning',
  KindOwnedElsewhere: 'warning',
  ControllerMissing: 'error',
  ControllerNotAvailable: 'error',
  NoLeader: 'error',
  RightsMissing: 'error',
  RightsUnlimited: 'warning',
  PolicyServerNotReady: 'error',
  PolicyServerForeign: 'info',
  TenantCapabilities: 'info',
  TenantModules: 'warning',
  PolicyServerMissing: 'error',
  PolicyNotServing: 'error',
  PolicyNotEnforced: 'error',
  PolicyDegraded: 'warning',
  PolicyPending: 'warning',
  PolicyMayReject: 'warning',
  PolicyMemoryExceeded: 'warning',
  PolicyQuarantined: 'warning',
  RevisionRefused: 'error',
  PolicyRuleNeverMatches: 'warning',
  ParametersWritable: 'warning',
  WebhookServiceMissing: 'error',
  WebhookCaMismatch: 'error',
  WebhooksLeftBehind: 'error',
  CertificateMissing: 'error',
  CertificateUnreadable: 'error',
  CertificateExpired: 'error',
  CertificateExpiring: 'warning',
  CertificateNotYetValid: 'error',
  CertificateNotTrusted: 'error',
  ExemptNamespaces: 'info',
  DegradedPolicies: 'info',
  UnservedPolicies: 'info',
  NamespaceUnrestricted: 'warning',
  GovernanceOff: 'warning',
  GovernanceStopped: 'warning',
  ClusterNamespaceForeign: 'error',
  GovernanceAccountRights: 'error',
  PolicyRightsMissing: 'warning',
  NetworkProviderUnknown: 'warning',
  KubewardenRuns: 'info',
  KubewardenWebhookLeft: 'warning',
  KubewardenControllerWebhookLeft: 'error',
  KubewardenFinalizer: 'warning',
  NotLookedAt: 'warning',
} as const satisfies Readonly<Record<string, Severity>>;

type FindingCode = keyof typeof FINDING_CODES;

export function finding(
  code: FindingCode,
  where: string,
  message: string,
  action: string,
  severity: Severity = FINDING_CODES[code],
): Finding {
  return { code, severity, where, message, action };
}

const RANKS: Readonly<Record<Severity, number>> = { error: 0, warning: 1, info: 2 };

/** Sorts by severity, errors first. */
export function inOrder(findings: Iterable<Finding>): readonly Finding[] {
  return [...findings].toSorted((a, b) => RANKS[a.severity] - RANKS[b.severity]);
}
