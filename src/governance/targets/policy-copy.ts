// The copy of a Policy for a cluster, as Open Cluster Management's propagator makes it.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  apiVersionOf,
  GOVERNANCE_GROUP,
  GOVERNANCE_LABELS,
  type KubernetesObject,
  LAST_APPLIED_ANNOTATION,
  type ObjectKey,
  POLICIES,
  type Policy,
  type PolicyDependency,
} from '../../resources/index.ts';
import type { Target } from './targets.ts';

/** Longest value of a label. */
const MAX_LABEL_LENGTH = 63;
/** Hexadecimal digits of the hash in the label of a long name: 40 bits, enough to distinguish the Policies of a cluster. */
const LABEL_HASH_LENGTH = 10;
/** Longest name of an object. */
const MAX_NAME_LENGTH = 253;
/** Tells Argo CD that copies of an object with its labels are not part of an application. */
const ARGO_COMPARE_OPTIONS = 'argocd.argoproj.io/compare-options';

/** `namespace.name`: the name of copies. Undefined if it would be too long for a name. */
export function copyName({ namespace = '', name }: ObjectKey): string | undefined {
  const copy = `${namespace}.${name}`;
  return copy.length > MAX_NAME_LENGTH ? undefined : copy;
}

/** The Policy that a copy was made from: namespaces have no dot. Undefined if the name is not that of a copy. */
export function rootOf(copy: string): ObjectKey | undefined {
  const dot = copy.indexOf('.');
  return dot <= 0 || dot === copy.length - 1 ? undefined : { namespace: copy.slice(0, dot), name: copy.slice(dot + 1) };
}

/**
 * The value of the label `root-policy`: the name of the copy. Open Cluster Management refuses names that are too long for a
 * label; here such a name is cut, and its hash appended.
 */
export function rootPolicyLabel(copy: string): string {
  if (copy.length <= MAX_LABEL_LENGTH) {
    return copy;
  }
  const hash = createHash('sha256').update(copy).digest('hex').slice(0, LABEL_HASH_LENGTH);
  const start = copy.slice(0, MAX_LABEL_LENGTH - LABEL_HASH_LENGTH - 1);
  return `${start.replace(/[^a-z0-9]+$/, '')}-${hash}`;
}

/** Dependencies of a Policy and its templates, by canonical names. */
export type Canonical = (dependencies: readonly PolicyDependency[]) => readonly PolicyDependency[];

/** The spec of copies: that of the Policy, with canonical dependencies. */
export function canonicalSpec(
  { dependencies, 'policy-templates': templates, ...spec }: Policy['spec'],
  canonical: Canonical,
): Policy['spec'] {
  return {
    ...spec,
    ...(dependencies === undefined ? {} : { dependencies: canonical(dependencies) }),
    'policy-templates': templates.map(({ extraDependencies, ...template }) => ({
      ...template,
      ...(extraDependencies === undefined ? {} : { extraDependencies: canonical(extraDependencies) }),
    })),
  };
}

/** The copy of a Policy for a cluster. */
export function policyCopy(root: Policy, name: string, target: Target, spec: Policy['spec']): Policy {
  return {
    apiVersion: apiVersionOf(POLICIES),
    kind: POLICIES.kind,
    metadata: {
      namespace: target.namespace,
      name,
      labels: {
        ...copied(root.metadata.labels, root.spec.copyPolicyMetadata),
        [GOVERNANCE_LABELS.rootPolicy]: rootPolicyLabel(name),
        [GOVERNANCE_LABELS.clusterName]: target.name,
        [GOVERNANCE_LABELS.clusterNamespace]: target.namespace,
      },
      annotations: {
        ...copied(root.metadata.annotations, root.spec.copyPolicyMetadata),
        [ARGO_COMPARE_OPTIONS]: 'IgnoreExtraneous',
      },
    },
    spec,
  };
}

/** Whether a Policy in the namespace of a cluster is a copy, not one that a user created there. */
export function isCopy({ metadata }: KubernetesObject): boolean {
  return metadata.labels?.[GOVERNANCE_LABELS.rootPolicy] !== undefined;
}

/** Whether a stored copy equals the wanted one. Labels and annotations of others are not kept, as upstream. */
export function isUpToDate(stored: Policy, wanted: Policy): boolean {
  return (
    isDeepStrictEqual(stored.metadata.labels, wanted.metadata.labels) &&
    isDeepStrictEqual(stored.metadata.annotations, wanted.metadata.annotations) &&
    isDeepStrictEqual(stored.spec, wanted.spec)
  );
}

/** Labels or annotations of the root for its copies. */
function copied(values: Readonly<Record<string, string>> | undefined, isAll = true): Readonly<Record<string, string>> {
  const entries = Object.entries(values ?? {}).filter(
    ([key]) => key !== LAST_APPLIED_ANNOTATION && (isAll || key.startsWith(`${GOVERNANCE_GROUP}/`)),
  );
  return Object.fromEntries(entries);
}
