import { dnsLabelProblems, dnsSubdomainProblems } from '../../names/index.ts';
import {
  isNamespacedPolicyId,
  isPolicyKind,
  isRevisedGovernanceKind,
  POLICY_SERVER_LABEL,
  policyId,
  revisionName,
} from './policy-names.ts';
import type { PolicyRevision } from './policy-revision.ts';

/**
 * Why a revision is not what its name and labels say; undefined when they agree. The controller writes no such revision. If
 * somebody else did, it could be served as a policy that it is not: with the rights of one of the cluster, or of another namespace.
 */
export function revisionMismatch(revision: Pick<PolicyRevision, 'metadata' | 'spec'>): string | undefined {
  try {
    return mismatchOf(revision);
  } catch {
    // API servers validate the schema of the kind, but it may be that of another version.
    return 'spec: expected the fields of a PolicyRevision, got other ones';
  }
}

function mismatchOf({ metadata, spec }: Pick<PolicyRevision, 'metadata' | 'spec'>): string | undefined {
  const { policyId: id, policyServer, revision } = spec;
  const problem = policyProblem(spec.policy);
  if (problem !== undefined) {
    return problem;
  }
  const { kind, name, namespace } = spec.policy;
  const ownId = policyId({ kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } });
  if (id !== ownId) {
    return expected('spec.policyId', `${ownId}, as spec.policy says`, id);
  }
  if (!Number.isSafeInteger(revision) || revision < 1) {
    return expected('spec.revision', 'a whole number from 1 on', revision);
  }
  const ownName = revisionName(id, revision);
  if (metadata.name !== ownName) {
    return expected('metadata.name', `${ownName}, as spec.policyId and spec.revision say`, metadata.name);
  }
  const label = metadata.labels?.[POLICY_SERVER_LABEL];
  return label === policyServer
    ? undefined
    : expected(`metadata.labels[${POLICY_SERVER_LABEL}]`, `${policyServer}, as spec.policyServer says`, label);
}

/** Names without dots in the namespace, so that no two policies have one id. */
function policyProblem({ kind, name, namespace }: PolicyRevision['spec']['policy']): string | undefined {
  if (!isPolicyKind(kind) && !isRevisedGovernanceKind(kind)) {
    return expected('spec.policy.kind', 'a kind of policies that have revisions', kind);
  }
  if (dnsSubdomainProblems(name).length > 0) {
    return expected('spec.policy.name', 'the name of an object', name);
  }
  const isNamespaced = isRevisedGovernanceKind(kind) || isNamespacedPolicyId(policyId({ kind, metadata: { name } }));
  if (isNamespaced !== (namespace !== undefined)) {
    return expected('spec.policy.namespace', `${isNamespaced ? 'a' : 'no'} namespace for kind ${kind}`, namespace);
  }
  return namespace === undefined || dnsLabelProblems(namespace).length === 0
    ? undefined
    : expected('spec.policy.namespace', 'the name of a namespace', namespace);
}

/** Longest value in a message: that of a name. Characters. */
const MAX_SHOWN = 253;

function expected(field: string, wanted: string, got: string | number | undefined): string {
  return `${field}: expected ${wanted}, got ${got === undefined ? 'nothing' : JSON.stringify(got).slice(0, MAX_SHOWN)}`;
}
