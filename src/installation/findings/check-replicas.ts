// What single replicas do not serve: for want of memory, in quarantine, or because a revision is not the controller's.
import {
  type AdmissionPolicyObject,
  namespaceOfPolicyId,
  policyId,
  type PolicyServerReplica,
} from '../../resources/index.ts';
import { listed } from '../../values/index.ts';
import { controllerUser } from '../objects/admission-guard.ts';
import { nameOf } from './check-policies.ts';
import { type Finding, finding } from './finding.ts';
import type { Snapshot } from './snapshot.ts';

/** Policies and replicas that one finding names; others are counted. */
const MAX_NAMES = 5;

/** A policy that is not served. */
interface Unserved {
  readonly policyServer: string;
  readonly id: string;
  readonly reason: string;
  readonly message: string;
  /** Undefined: it was refused when a replica tried it, before it was rolled out. */
  readonly replica?: string;
}

export function checkReplicas(snapshot: Snapshot): readonly Finding[] {
  const unserved = [...snapshot.replicas.flatMap(deviationsOf), ...snapshot.policies.flatMap(refusalsOf)];
  const names = new Map(snapshot.policies.map((policy) => [policyId(policy), nameOf(policy)]));
  const of = (reason: string): readonly Unserved[] => unserved.filter((one) => one.reason === reason);
  return [
    ...grouped(of('MemoryExceeded'), ({ policyServer, id }) => `${policyServer}/${namespaceOfPolicyId(id) ?? ''}`).map(
      (all) => memoryExceeded(all, names),
    ),
    ...grouped(of('Quarantined'), ({ policyServer, id }) => `${policyServer}/${id}`).map((all) =>
      quarantined(all, names),
    ),
    ...grouped(of('RevisionMismatch'), ({ message }) => message).map((all) => revisionRefused(all, snapshot)),
  ];
}

function deviationsOf({ metadata, spec, status }: PolicyServerReplica): readonly Unserved[] {
  const { policyServer } = spec;
  return (status?.deviations ?? []).map(({ policy: id, reason, message = '' }) => ({
    policyServer,
    id,
    reason,
    message,
    replica: metadata.name ?? '',
  }));
}

function refusalsOf(policy: AdmissionPolicyObject): readonly Unserved[] {
  const policyServer = policy.spec.policyServer ?? 'default';
  const failed = policy.status?.conditions?.find(
    ({ status, reason }) => status === 'False' && (reason === 'MemoryExceeded' || reason === 'Quarantined'),
  );
  const { reason = '', message = '' } = failed ?? {};
  return failed === undefined ? [] : [{ policyServer, id: policyId(policy), reason, message }];
}

type Group = readonly [first: Unserved, ...others: readonly Unserved[]];

function grouped(all: readonly Unserved[], keyOf: (one: Unserved) => string): readonly Group[] {
  // No group is empty.
  return [...Map.groupBy(all, keyOf).values()].map(([first, ...others]) => [first, ...others] as unknown as Group);
}

function memoryExceeded(all: Group, names: ReadonlyMap<string, string>): Finding {
  const [{ policyServer, id, message }] = all;
  const namespace = namespaceOfPolicyId(id);
  const owner = namespace === undefined ? 'the cluster-wide policies' : `the policies of namespace ${namespace}`;
  const policies = [...new Set(all.map((one) => names.get(one.id) ?? one.id))];
  return finding(
    'PolicyMemoryExceeded',
    `policyserver/${policyServer}`,
    `${owner} would exceed the memory for policies${replicasText(all)}, so it does not serve the newest revision of ${listed(policies, MAX_NAMES)}: ${message}`,
    'Remove policies of this owner, use smaller modules, or raise the memory limit of the PolicyServer (docs/server.md#memory-of-policies).',
  );
}

function quarantined(all: Group, names: ReadonlyMap<string, string>): Finding {
  const [{ policyServer, id, message }] = all;
  return finding(
    'PolicyQuarantined',
    names.get(id) ?? id,
    `its module is in quarantine on PolicyServer ${policyServer}${replicasText(all)}: ${message}`,
    'Change the module or its settings. `kubectl describe pod` says why the policy server ended (docs/server.md#memory-of-policies).',
  );
}

function revisionRefused(all: Group, { namespace }: Snapshot): Finding {
  const [{ id, message }] = all;
  return finding(
    'RevisionRefused',
    id,
    `${message}${replicasText(all)}`,
    `Find out who wrote it, in the audit log of the cluster, and delete it as the controller: kubectl -n ${namespace} --as=${controllerUser({ namespace })} delete policyrevision NAME`,
  );
}

function replicasText(all: readonly Unserved[]): string {
  const replicas = [...new Set(all.flatMap(({ replica }) => replica ?? []))];
  return replicas.length === 0 ? '' : ` on ${listed(replicas, MAX_NAMES)}`;
}
