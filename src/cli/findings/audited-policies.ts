// What the statuses of policies say about how much of the cluster is scanned.
import { auditPolicyName } from '../../audit/index.ts';
import { type Cluster, isNotFound, listReadable } from '../../cluster/index.ts';
import { type AdmissionPolicyObject, type OwnKind, POLICY_KINDS, textOf, valueAt } from '../../resources/index.ts';
import { isPolicyNamed, unknownPolicy } from '../policy/policy-names.ts';

/** `Unknown`: the status does not say. Others: `status.audit.state` of the policy. */
export interface PolicyCoverage {
  /** `cap/pinned-images`; `cap` for all that the user may not read. */
  readonly policy: string;
  readonly state: string;
  readonly reason: string;
  readonly message: string;
}

const NOT_AUDITED = { reason: 'NotAudited', message: 'no auditor has written status.audit' };

const NO_COVERAGE = { reason: 'NoCoverage', message: 'reports do not say which objects it has judged' };

const COMPLETE: ReadonlySet<string> = new Set(['Complete', 'NotAuditable']);

/** @throws ApiError, ClusterError when the cluster fails */
export async function auditedPolicies(cluster: Cluster, namespace: string): Promise<readonly PolicyCoverage[]> {
  return (await Promise.all(POLICY_KINDS.map((kind) => ofKind(cluster, kind, namespace)))).flat();
}

/** Which policies there are, besides those with coverage. */
export interface OtherPolicies {
  /** In reports. */
  readonly reported: readonly string[];
  /** Whether all reports are read. */
  readonly isAllRead: boolean;
  /** See statusPolicies. */
  readonly ofStatuses: readonly string[] | undefined;
}

/**
 * The coverage by named policies, and what could not be read of any.
 * @throws CliError when there is no such policy
 */
export function coverageOfNamed(
  names: readonly string[],
  all: readonly PolicyCoverage[],
  { reported, isAllRead, ofStatuses }: OtherPolicies,
): readonly PolicyCoverage[] {
  const unread = all.filter((one) => !isPolicy(one));
  const known = [...new Set([...all.filter(isPolicy).map(({ policy }) => policy), ...reported, ...(ofStatuses ?? [])])];
  const unknown = names.find((name) => !known.some((policy) => isPolicyNamed(policy, name)));
  if (unknown !== undefined && isAllRead && unread.length === 0 && ofStatuses !== undefined) {
    throw unknownPolicy(unknown, known);
  }
  const named = names.flatMap((name) => {
    const own = all.filter(({ policy }) => isPolicyNamed(policy, name));
    const others = known.filter((policy) => isPolicyNamed(policy, name));
    const uncovered = others.length > 0 ? others : [name];
    return own.length > 0 ? own : uncovered.map((policy) => ({ policy, state: 'Unknown', ...NO_COVERAGE }));
  });
  return [...named, ...unread];
}

/** Whether it is about one policy, and not about all that cannot be read. */
export function isPolicy({ policy }: PolicyCoverage): boolean {
  return policy.includes('/');
}

/** Whether more may be wrong than was found. */
export function isUncovered({ state }: PolicyCoverage): boolean {
  return !COMPLETE.has(state);
}

async function ofKind(
  cluster: Cluster,
  kind: OwnKind<AdmissionPolicyObject>,
  namespace: string,
): Promise<readonly PolicyCoverage[]> {
  const [word = kind.resource] = kind.declaration.shortNames;
  try {
    const { items, scope } = await listReadable(cluster, kind, namespace);
    const unread = {
      policy: word,
      state: 'Unknown',
      reason: 'Forbidden',
      message: `you may not list ${kind.resource}`,
    };
    return [...items.map(policyCoverage), ...(scope === 'all' ? [] : [unread])];
  } catch (error) {
    if (isNotFound(error)) {
      return [];
    }
    throw error;
  }
}

function policyCoverage(policy: AdmissionPolicyObject): PolicyCoverage {
  const audit = valueAt(policy.status, 'audit');
  const [state = '', reason = '', message = ''] = ['state', 'reason', 'message'].map((field) =>
    textOf(valueAt(audit, field)),
  );
  const known = { policy: auditPolicyName(policy), state, reason, message };
  return state === '' ? { ...known, state: 'Unknown', ...NOT_AUDITED } : known;
}
