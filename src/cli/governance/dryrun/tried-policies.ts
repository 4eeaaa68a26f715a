// The policies of a dry run, as they are tried: none of them enforces.
import { rootOf } from '../../../governance/index.ts';
import {
  GOVERNANCE_KINDS,
  isJsonObject,
  type JsonValue,
  type KubernetesObject,
  apiVersionOf,
  type ObjectKey,
  own,
  POLICIES,
  POLICY_SETS,
  valueAt,
} from '../../../resources/index.ts';

/** The namespace of Policies that name none. */
const DEFAULT_NAMESPACE = 'default';

type Manifest = KubernetesObject & { readonly spec?: JsonValue };

export interface TriedPolicies {
  /** Policies and PolicySets; templates on their own in the namespace of the cluster. */
  readonly policies: readonly KubernetesObject[];
  /** Other objects of the same files, such as placements. */
  readonly ignored: readonly KubernetesObject[];
}

export function triedPolicies(manifests: readonly KubernetesObject[], clusterName: string): TriedPolicies {
  const { policies = [], ignored = [] } = Object.groupBy(manifests, (one) => (isOurs(one) ? 'policies' : 'ignored'));
  return { policies: policies.map((policy) => tried(policy, clusterName)), ignored };
}

function tried({ apiVersion, kind, ...manifest }: Manifest, clusterName: string): KubernetesObject {
  const { name = '', namespace = DEFAULT_NAMESPACE, labels = {}, annotations = {} } = manifest.metadata;
  const metadata = { name, namespace, labels, annotations };
  switch (kind) {
    case POLICIES.kind:
      return {
        apiVersion,
        kind,
        metadata: { ...metadata, ...rootKey(namespace, name, clusterName) },
        ...policySpec(manifest),
      };
    case POLICY_SETS.kind:
      return { apiVersion, kind, metadata, ...(manifest.spec === undefined ? {} : { spec: manifest.spec }) };
    default:
      return { apiVersion, kind, metadata: { ...metadata, namespace: clusterName }, ...templateSpec(manifest) };
  }
}

/** A copy is tried as the Policy that it was made from. */
function rootKey(namespace: string, name: string, clusterName: string): ObjectKey | undefined {
  return namespace === clusterName ? (rootOf(name) ?? { namespace: DEFAULT_NAMESPACE, name }) : undefined;
}

function isOurs({ apiVersion, kind }: KubernetesObject): boolean {
  return GOVERNANCE_KINDS.some((one) => one.kind === kind && apiVersionOf(one) === apiVersion);
}

type WithSpec = { readonly spec?: JsonValue };

/** A Policy that is enabled, informs, and whose templates are evaluated however seldom they say. */
function policySpec({ spec }: WithSpec): WithSpec {
  if (!isJsonObject(spec)) {
    return spec === undefined ? {} : { spec };
  }
  const templates = own(spec, 'policy-templates');
  const listed = Array.isArray(templates) ? { 'policy-templates': templates.map(triedTemplate) } : {};
  return { spec: { ...spec, disabled: false, remediationAction: 'inform', ...listed } };
}

function triedTemplate(template: JsonValue): JsonValue {
  const definition = valueAt(template, 'objectDefinition');
  if (!isJsonObject(template) || !isJsonObject(definition)) {
    return template;
  }
  const hasOurKind = GOVERNANCE_KINDS.some(({ kind }) => kind === own(definition, 'kind'));
  return hasOurKind ? { ...template, objectDefinition: { ...definition, ...templateSpec(definition) } } : template;
}

/** The spec of a template without what delays or enforces. */
function templateSpec({ spec }: WithSpec): WithSpec {
  if (!isJsonObject(spec)) {
    return spec === undefined ? {} : { spec };
  }
  const { evaluationInterval: _interval, pruneObjectBehavior: _prune, ...rest } = spec;
  return { spec: { ...rest, remediationAction: 'inform' } };
}
