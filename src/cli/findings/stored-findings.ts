// What the reports of a cluster say, one finding for each result.
import {
  groupVersionOf,
  type OpenReport,
  type REPORT_RESULTS,
  REPORT_SEVERITIES,
  type ReportResult,
} from '../../resources/index.ts';
import { compareStrings } from '../../go/index.ts';
import { isPolicyNamed } from '../policy/policy-names.ts';

export type StoredResultName = (typeof REPORT_RESULTS)[number];
export type ReportSeverity = (typeof REPORT_SEVERITIES)[number];

/** A result of a report. */
export interface StoredFinding {
  readonly source: string;
  readonly policy: string;
  readonly rule?: string;
  readonly result: StoredResultName;
  readonly severity?: ReportSeverity;
  readonly category?: string;
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace?: string;
    readonly name: string;
    readonly uid?: string;
  };
  readonly message?: string;
  /** `protect` or `monitor`. */
  readonly mode?: string;
  /** Whether the policy would change the object. */
  readonly wouldChange?: true;
  readonly exception?: string;
  readonly policyRevision?: string;
  readonly firstSeen?: string;
  readonly lastSeen?: string;
}

/** Which findings are shown. Absent: all. */
export interface FindingFilter {
  /** Names as in results, or without what is before the last slash. */
  readonly policies?: readonly string[];
  readonly kinds?: readonly { readonly group: string; readonly kind: string }[];
  readonly results?: readonly StoredResultName[];
  /** This and the more severe ones. */
  readonly severity?: ReportSeverity;
  /** Written since then. Milliseconds since 1970. */
  readonly since?: number;
  /** Name and namespace of one object of the kinds. */
  readonly object?: { readonly namespace?: string; readonly name: string };
}

export const FINDING_ORDERS = ['policy', 'namespace', 'age'] as const;
export type FindingOrder = (typeof FINDING_ORDERS)[number];

export function storedFindings({ results = [], source, scope, metadata }: OpenReport): readonly StoredFinding[] {
  return results.flatMap((result) => {
    const found = storedFinding({
      source: source ?? '',
      ...result,
      resources: result.resources ?? (scope ? [scope] : []),
    });
    return found === undefined ? [] : [withNamespace(found, metadata.namespace)];
  });
}

export function isWanted(finding: StoredFinding, filter: FindingFilter): boolean {
  const { policy, object, result, severity, lastSeen = '' } = finding;
  const { policies, kinds, results, severity: least, since, object: wanted } = filter;
  const { group } = groupVersionOf(object.apiVersion);
  return (
    (policies === undefined || policies.some((name) => isPolicyNamed(policy, name))) &&
    (kinds === undefined || kinds.some((one) => one.kind === object.kind && one.group === group)) &&
    (results === undefined || results.includes(result)) &&
    (least === undefined || (severity !== undefined && rankOf(severity) <= rankOf(least))) &&
    (since === undefined || Date.parse(lastSeen) >= since) &&
    (wanted === undefined || (wanted.name === object.name && wanted.namespace === object.namespace))
  );
}

export function sortedFindings(findings: readonly StoredFinding[], order: FindingOrder): readonly StoredFinding[] {
  const textOf = (finding: StoredFinding): string => {
    const { policy, rule = '', firstSeen = '', object } = finding;
    const { kind, namespace = '', name } = object;
    const first = { policy, namespace, age: firstSeen }[order];
    return [first, policy, rule, namespace, kind, name].join('\n');
  };
  return findings.toSorted((one, other) => compareStrings(textOf(one), textOf(other)));
}

function rankOf(severity: ReportSeverity): number {
  return REPORT_SEVERITIES.indexOf(severity);
}

/** Undefined for a pass, and where nothing says what it is about. */
function storedFinding(stored: ReportResult): StoredFinding | undefined {
  const { policy, result, resources = [], properties = {}, source = '' } = stored;
  const [{ apiVersion = '', kind = '', namespace, name, uid } = {}] = resources;
  if (result === undefined || result === 'pass' || name === undefined) {
    return undefined;
  }
  const { mode, wouldChange, exception, policyRevision, firstSeen, lastSeen } = properties;
  return {
    source,
    policy,
    result,
    object: { apiVersion, kind, name, ...defined({ namespace, uid }) },
    ...(wouldChange === 'true' ? { wouldChange: true } : {}),
    ...defined({ rule: stored.rule, severity: stored.severity, category: stored.category, message: stored.message }),
    ...defined({ mode, exception, policyRevision, firstSeen, lastSeen: lastSeen ?? timeOf(stored) }),
  };
}

/** Others leave out the namespace of the report. */
function withNamespace(finding: StoredFinding, namespace: string | undefined): StoredFinding {
  const { object } = finding;
  return namespace === undefined ? finding : { ...finding, object: { namespace, ...object } };
}

function timeOf({ timestamp }: ReportResult): string | undefined {
  const date = new Date((timestamp?.seconds ?? Number.NaN) * 1000);
  return Number.isNaN(date.getTime()) ? undefined : `${date.toISOString().slice(0, -5)}Z`;
}

type Defined<T> = { readonly [Name in keyof T]?: Exclude<T[Name], undefined> };

function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}
