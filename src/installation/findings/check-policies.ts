// Checks whether PolicyServers are ready and policies serve.
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  type Condition,
  findCondition,
  type KubernetesObject,
  MODULES_KEPT,
  POLICY_ENFORCED,
  POLICY_SERVER_LABEL,
  POLICY_SERVERS,
  policyId,
  type PolicyServerObject,
  privilegedNames,
} from '../../resources/index.ts';
import { ALL_MODULES } from '../../modules/sources/index.ts';
import { isOurConfiguration } from '../our-configurations.ts';
import { policyServerProgress } from '../installed-state.ts';
import { foreignReason, KEPT_REASONS, POLICY_ACTIVE, REASONS, tenantModules } from '../../lifecycle/index.ts';
import { policyServerObjectName } from '../../lifecycle/access-rules/index.ts';
import { isTakenOver } from '../../lifecycle/grants/index.ts';
import { checkIssues } from './check-issues.ts';
import { checkParameters } from './check-parameters.ts';
import { controllerOf, hasAvailablePods } from './controller-arguments.ts';
import { type Finding, finding } from './finding.ts';
import { isUnread, type Snapshot } from './snapshot.ts';
import { toDoOf } from './to-do-of.ts';

const UNENFORCED = 'requests are admitted without it';
/** Time for a new policy to be loaded, that of a rollout by default. Milliseconds. */
const PATIENCE_MS = 5 * 60_000;

export function checkPolicyServers(snapshot: Snapshot): readonly Finding[] {
  return snapshot.policyServers.flatMap((server) => {
    const where = `policyserver/${server.metadata.name}`;
    const reason = foreignReasonOf(snapshot, server);
    if (reason !== undefined) {
      const message = `${reason}: Portcullis leaves it and its policies alone`;
      return [finding('PolicyServerForeign', where, message, 'To take it over: docs/migration.md.')];
    }
    const { done, text } = policyServerProgress(server);
    const { readyReplicas = 0, conditions = [] } = server.status ?? {};
    const controller = controllerOf(snapshot);
    // Without a running controller nobody looks at it: that is the finding.
    const isExplained = conditions.length === 0 && controller !== undefined && !hasAvailablePods(controller);
    const action = `Look at its pods: kubectl -n ${snapshot.namespace} describe pods -l portcullis.dev/policy-server=${server.metadata.name}`;
    const isDisarmed = server.metadata.annotations?.[ANNOTATIONS.disarmed] !== undefined;
    return [
      ...(isDisarmed ? [disarmedFinding(where, server, `--policy-server ${server.metadata.name}`)] : []),
      ...(done || server.spec.replicas === 0 || isExplained
        ? []
        : [finding('PolicyServerNotReady', where, text, action, readyReplicas > 0 ? 'warning' : 'error')]),
      ...checkTenantCapabilities(server, where),
      ...checkTenantModules(server, where),
    ];
  });
}

/** PolicyServers that were taken over keep the meaning of an absent field. */
function checkTenantCapabilities(server: PolicyServerObject, where: string): readonly Finding[] {
  return server.spec.namespacedPoliciesCapabilities !== undefined || !isTakenOver(server)
    ? []
    : [
        finding(
          'TenantCapabilities',
          where,
          'policies of namespaces may use all host capabilities, because it was taken over and does not name them',
          'Name those that they need in spec.namespacedPoliciesCapabilities; an empty list allows none.',
        ),
      ];
}

function checkTenantModules(server: PolicyServerObject, where: string): readonly Finding[] {
  return tenantModules(server).includes(ALL_MODULES)
    ? [
        finding(
          'TenantModules',
          where,
          'policies of namespaces may bring their own WebAssembly, which takes as much time and memory as the limits of a policy allow',
          `Name the modules that they need in the annotation ${ANNOTATIONS.tenantModules}, or give them a PolicyServer of their own (docs/policy-servers.md#modules-of-tenants).`,
        ),
      ]
    : [];
}

export function checkPolicies(snapshot: Snapshot): readonly Finding[] {
  const servers = new Map(snapshot.policyServers.map((server) => [server.metadata.name ?? '', server]));
  return snapshot.policies.flatMap((policy) => {
    const name = policy.spec.policyServer ?? 'default';
    const server = servers.get(name);
    if (server === undefined && !isUnread(snapshot, POLICY_SERVERS)) {
      const effect = unenforced(policy) === undefined ? '' : `: ${UNENFORCED}`;
      const message = `it names PolicyServer ${name}, which does not exist${effect}`;
      return [
        finding('PolicyServerMissing', nameOf(policy), message, 'Create that PolicyServer, or name another one.'),
      ];
    }
    return server === undefined || foreignReasonOf(snapshot, server) === undefined
      ? [
          ...checkPolicy(policy, snapshot.now),
          ...checkRules(policy),
          ...checkModulesKept(policy),
          ...checkIssues(policy, nameOf(policy)),
          ...checkParameters(snapshot, policy, nameOf(policy)),
        ]
      : [];
  });
}

/**
 * Policies that nothing could evaluate after the loss of some processes, while a source is down. Not for copies on one node: a cluster
 * may have no other.
 */
function checkModulesKept(policy: AdmissionPolicyObject): readonly Finding[] {
  const kept = findCondition(policy.status?.conditions, MODULES_KEPT);
  return kept?.status === 'False' && kept.reason !== KEPT_REASONS.oneNode
    ? [
        finding(
          'ModulesNotKept',
          nameOf(policy),
          kept.message,
          'Run at least two controllers, and two replicas of the PolicyServer, with room for its modules (docs/policy-servers.md#copies-of-modules).',
        ),
      ]
    : [];
}

/** Somebody ended the enforcement, and says why. */
function disarmedFinding(where: string, { metadata }: KubernetesObject, target: string): Finding {
  const reason = metadata.annotations?.[ANNOTATIONS.disarmed] ?? '';
  return finding('Disarmed', where, `${UNENFORCED}: disarmed (${reason})`, `portcullis break-glass rearm ${target}`);
}

function checkPolicy(policy: AdmissionPolicyObject, now: number): readonly Finding[] {
  const { phase = 'Pending', conditions = [] } = policy.status ?? {};
  const where = nameOf(policy);
  const reason = reasonOf(conditions);
  const action = `portcullis rollout status ${where}`;
  const off = unenforced(policy);
  if (off?.reason === REASONS.disarmed) {
    return policy.metadata.annotations?.[ANNOTATIONS.disarmed] === undefined
      ? [] // The finding is about its PolicyServer.
      : [disarmedFinding(where, policy, where)];
  }
  if (off !== undefined && (phase === 'Error' || now - Date.parse(off.lastTransitionTime) >= PATIENCE_MS)) {
    const message = `${UNENFORCED} (${off.reason}): ${reason}`;
    const severity = phase === 'Error' ? 'error' : 'warning';
    const toDo = toDoOf(policy.status?.reason ?? '', where);
    return [
      finding(
        'PolicyNotEnforced',
        where,
        message,
        `${toDo}${toDo.endsWith('.') ? ' The' : '; the'} state of its rollout: ${action}`,
        severity,
      ),
    ];
  }
  switch (phase) {
    case 'Error': {
      const answer = findCondition(conditions, POLICY_ENFORCED)?.message ?? 'its failurePolicy answers requests';
      // The message of most failures ends with it.
      const effect = reason.includes(answer) ? '' : `; ${answer}`;
      return [finding('PolicyNotServing', where, `${reason}${effect}`, action)];
    }
    case 'Degraded':
      return [finding('PolicyDegraded', where, `not served everywhere as declared: ${reason}`, action)];
    case 'Pending':
    case 'Updating': {
      const since = Date.parse(policy.metadata.creationTimestamp ?? '');
      return phase === 'Updating' || now - since < PATIENCE_MS
        ? []
        : [finding('PolicyPending', where, `no controller has brought it to its policy server: ${reason}`, action)];
    }
    default:
      return [];
  }
}

/** Policies of a namespace that were stored before rules for privileged kinds were refused. */
function checkRules(policy: AdmissionPolicyObject): readonly Finding[] {
  const names = policy.metadata.namespace === undefined ? [] : policy.spec.rules.flatMap(privilegedNames);
  if (names.length === 0) {
    return [];
  }
  const list = [...new Set(names.map(({ name }) => name))].join(', ');
  const message = `its rules name ${list}, and policies of a namespace never see such requests`;
  return [
    finding(
      'PolicyRuleNeverMatches',
      nameOf(policy),
      message,
      'Remove them, or write a ClusterAdmissionPolicy for them.',
    ),
  ];
}

/** The condition Enforced, if it says that the policy is not. */
function unenforced({ status }: AdmissionPolicyObject): Condition | undefined {
  const condition = findCondition(status?.conditions, POLICY_ENFORCED);
  return condition?.status === 'False' ? condition : undefined;
}

/** Reasons and messages of false conditions, the newest first. */
function reasonOf(conditions: NonNullable<AdmissionPolicyObject['status']>['conditions']): string {
  const failing = (conditions ?? []).filter(({ status }) => status === 'False');
  const active = findCondition(conditions, POLICY_ACTIVE);
  const [telling = active] = active?.status === 'False' ? [active] : failing;
  return telling === undefined ? 'its status does not say why' : `${telling.reason}: ${telling.message}`;
}

/** `clusteradmissionpolicy/one`, `admissionpolicy/one -n shop`. */
export function nameOf({ kind, metadata }: KubernetesObject): string {
  const { name = '', namespace } = metadata;
  return `${kind.toLowerCase()}/${name}${namespace === undefined ? '' : ` -n ${namespace}`}`;
}

/** Why a PolicyServer belongs to another controller; undefined when it is ours. */
export function foreignReasonOf(
  { configurations, deployments, namespace }: Snapshot,
  server: Snapshot['policyServers'][number],
): string | undefined {
  const name = policyServerObjectName(server.metadata.name ?? '');
  const deployment = deployments.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
  const isAsked = configurations.some(
    (one) => isOurConfiguration(one, namespace) && one.metadata.labels?.[POLICY_SERVER_LABEL] === server.metadata.name,
  );
  return foreignReason(server, deployment, isAsked);
}

export function policyIds({ policies }: Snapshot): ReadonlySet<string> {
  return new Set(policies.map(policyId));
}
