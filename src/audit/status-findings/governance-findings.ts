// Findings of governance policies: what the statuses of their templates say about objects.
import {
  type CertificatePolicy,
  type ConfigurationPolicy,
  GOVERNANCE_ANNOTATIONS,
  type KubernetesObject,
  POLICIES,
} from '../../resources/index.ts';
import type { AuditedObject } from '../audit-result.ts';
import type { AuditFinding, FindingSeverity } from '../finding.ts';

const NON_COMPLIANT = 'NonCompliant';

/** The findings of a ConfigurationPolicy. Undefined: the status is not that of its generation, or has no verdict yet. */
export function configurationFindings(policy: ConfigurationPolicy): readonly AuditFinding[] | undefined {
  if (!isEvaluated(policy)) {
    return undefined;
  }
  const { relatedObjects = [] } = policy.status ?? {};
  const base = findingOfTemplate(policy);
  return relatedObjects
    .filter(({ compliant }) => compliant === NON_COMPLIANT)
    .map(({ object = {}, reason, properties = {} }) => {
      const { name = '-', namespace } = object.metadata ?? {};
      return {
        ...base,
        object: audited(object.apiVersion ?? '', object.kind ?? '', name, namespace, properties.uid),
        ...(reason === undefined ? {} : { message: withDifference(reason, properties.diff) }),
      };
    });
}

/** The findings of a CertificatePolicy: a Secret each. Undefined as for {@link configurationFindings}. */
export function certificateFindings(policy: CertificatePolicy): readonly AuditFinding[] | undefined {
  if (!isEvaluated(policy)) {
    return undefined;
  }
  const base = findingOfTemplate(policy);
  return Object.entries(policy.status?.compliancyDetails ?? {}).flatMap(
    ([namespace, { nonCompliantCertificatesList }]) =>
      Object.values(nonCompliantCertificatesList ?? {}).map(({ secretName = '-', expiration }) => ({
        ...base,
        object: audited('v1', 'Secret', secretName, namespace, undefined),
        message: `the certificate does not meet the policy${expiration === undefined ? '' : `; it expires ${expiration}`}`,
      })),
  );
}

/** Whether the status is a verdict on what the spec says now. */
function isEvaluated({ metadata, status }: ConfigurationPolicy | CertificatePolicy): boolean {
  const { compliant, observedGeneration } = status ?? {};
  return (
    (compliant === 'Compliant' || compliant === NON_COMPLIANT) &&
    // Controllers of Open Cluster Management do not write it.
    (observedGeneration === undefined || observedGeneration === metadata.generation)
  );
}

function findingOfTemplate({
  kind,
  metadata,
  spec,
}: ConfigurationPolicy | CertificatePolicy): Omit<AuditFinding, 'object' | 'message'> {
  const { name = '', namespace = '', uid = '', generation, annotations = {} } = metadata;
  const category = annotations[GOVERNANCE_ANNOTATIONS.categories];
  const severity = spec.severity?.toLowerCase() as FindingSeverity | undefined;
  return {
    policy: policyOf(metadata) ?? `${kind.toLowerCase()}/${namespace}/${name}`,
    policyId: `${kind}/${namespace}/${name}`,
    policyUid: uid,
    ...(generation === undefined ? {} : { policyGeneration: generation }),
    rule: name,
    mode: 'protect',
    result: 'fail',
    ...(severity === undefined ? {} : { severity }),
    ...(category === undefined ? {} : { category }),
  };
}

/** The Policy that a template is of. Its copies are named `namespace.name`. */
function policyOf({ ownerReferences = [] }: KubernetesObject['metadata']): string | undefined {
  const owner = ownerReferences.find(({ kind }) => kind === POLICIES.kind);
  return owner === undefined ? undefined : `policy/${owner.name.replace('.', '/')}`;
}

function audited(
  apiVersion: string,
  kind: string,
  name: string,
  namespace: string | undefined,
  uid: string | undefined,
): AuditedObject {
  return {
    apiVersion,
    kind,
    name,
    ...(namespace === undefined || namespace === '' ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
  };
}

function withDifference(reason: string, diff: string | undefined): string {
  return diff === undefined || diff === '' ? reason : `${reason}\n${diff}`;
}
