// Findings of `portcullis doctor`. docs/install.md explains each code.
import { listed } from '../../values/index.ts';

/** Objects that the text of a finding names; `objects` has all. */
const MAX_NAMED_OBJECTS = 5;

export type Severity = 'error' | 'info' | 'warning';

export interface Finding {
  readonly code: FindingCode;
  readonly severity: Severity;
  /** The objects in kubectl's notation, at most {@link MAX_NAMED_OBJECTS} unless they are kinds. */
  readonly where: string;
  /** All objects with this problem. */
  readonly objects: readonly string[];
  /** The problem: expected and actual state. */
  readonly message: string;
  /** What to do. */
  readonly action: string;
}

/** All codes with their usual severity. */
export const FINDING_CODES = {
  NotInstalled: 'error',
  ApiServerTooOld: 'error',
  KindMissing: 'error',
  KindDiffers: 'warning',
  KindOwnedElsewhere: 'warning',
  ControllerMissing: 'error',
  ControllerNotAvailable: 'error',
  AuditorMissing: 'warning',
  AuditorNotAvailable: 'warning',
  AuditRightsMissing: 'warning',
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
  Disarmed: 'error',
  PolicyDegraded: 'warning',
  PolicyPending: 'warning',
  PolicyCannotWork: 'error',
  PolicyIssue: 'warning',
  PolicyMayReject: 'warning',
  ModulesNotKept: 'warning',
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
  return { code, severity, where, objects: [where], message, action };
}

/** One finding for each cause: those of several objects that say the same, and advise the same, are one. */
export function byCause(findings: readonly Finding[]): readonly Finding[] {
  const causes = Map.groupBy(findings, ({ code, severity, where, message, action }) =>
    JSON.stringify([code, severity, message, action.replaceAll(where, '')]),
  );
  return [...causes.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [others.length === 0 ? first : ofSeveral(first, others)],
  );
}

function ofSeveral(first: Finding, others: readonly Finding[]): Finding {
  const objects = [...new Set([first, ...others].map(({ where }) => where))];
  const likewise = first.action.includes(first.where) ? ' Likewise for the others.' : '';
  return { ...first, where: listed(objects, maxNamed(first.code)), objects, action: `${first.action}${likewise}` };
}

/** What a user may not list is named in full: who asks for rights needs all names, and they are kinds, so there are few. */
function maxNamed(code: FindingCode): number {
  return code === 'NotLookedAt' ? Infinity : MAX_NAMED_OBJECTS;
}

const RANKS: Readonly<Record<Severity, number>> = { error: 0, warning: 1, info: 2 };

/** Sorts by severity, errors first. */
export function inOrder(findings: Iterable<Finding>): readonly Finding[] {
  return [...findings].toSorted((a, b) => RANKS[a.severity] - RANKS[b.severity]);
}
