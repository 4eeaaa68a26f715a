// The right to annotate NetworkPolicies, and the limit to it that RBAC cannot express.
import { NETWORK_POLICY_ANNOTATION_RULES } from '../../network-policy/access-rules/index.ts';
import { ANNOTATIONS, type KubernetesObject } from '../../resources/index.ts';
import { commented } from './comments.ts';
import { controllerGuard, quoted } from './admission-guard.ts';
import type { Grant } from './governance-objects.ts';
import { componentLabels, CONTROLLER, type InstallContext } from './naming.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const NAME = `${CONTROLLER}-network-policy-annotations`;

export const ANNOTATION_GRANT: Grant = {
  kind: 'ClusterRole',
  name: NAME,
  account: CONTROLLER,
  rules: NETWORK_POLICY_ANNOTATION_RULES,
};

/** The right to patch NetworkPolicies, limited to one annotation. */
export function annotationAccess({ namespace }: Pick<InstallContext, 'namespace'>): readonly KubernetesObject[] {
  const metadata = { name: NAME, labels: componentLabels('controller') };
  return [
    ...annotationGuard({ namespace }),
    commented(
      'Only for the annotation that repeats the status: the ValidatingAdmissionPolicy limits the right to it.',
      {
        apiVersion: `${RBAC_GROUP}/v1`,
        kind: 'ClusterRole',
        metadata,
        rules: NETWORK_POLICY_ANNOTATION_RULES,
      },
    ),
    {
      apiVersion: `${RBAC_GROUP}/v1`,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: NAME },
      subjects: [{ kind: 'ServiceAccount', name: CONTROLLER, namespace }],
    },
  ];
}

/**
 * A ValidatingAdmissionPolicy by which the controller changes nothing of a NetworkPolicy but the annotation. Not in the namespace
 * of Portcullis, where it writes the NetworkPolicies of policy servers.
 */
export function annotationGuard(context: Pick<InstallContext, 'namespace'>): readonly KubernetesObject[] {
  return controllerGuard(context, {
    name: 'portcullis-network-policies',
    why: 'RBAC cannot restrict the right to patch NetworkPolicies to an annotation. This does: the controller can never change what a policy allows.',
    apiGroup: 'networking.k8s.io',
    resources: ['networkpolicies'],
    conditions: [{ name: 'is-elsewhere', expression: `request.namespace != ${quoted(context.namespace)}` }],
    validations: [
      { expression: IS_ANNOTATION_ONLY, message: 'the controller of Portcullis only annotates NetworkPolicies' },
    ],
  });
}

/** An expression by which an optional field of the metadata is the same before and after. */
function isSameField(field: string): string {
  const [now, before] = ['object', 'oldObject'].map((name) => `${name}.metadata.${field}`);
  return `has(${now}) == has(${before}) && (!has(${now}) || ${now} == ${before})`;
}

/** An expression by which each other annotation of one object is in the other one. */
function hasAnnotations(one: string, other: string): string {
  const [inner, outer] = [one, other].map((name) => `${name}.metadata.annotations`);
  const key = `'${ANNOTATIONS.networkPolicyStatus}'`;
  return `(!has(${inner}) || ${inner}.all(key, key == ${key} || (has(${outer}) && key in ${outer} && ${outer}[key] == ${inner}[key])))`;
}

const IS_ANNOTATION_ONLY = [
  "request.operation == 'UPDATE'",
  'object.spec == oldObject.spec',
  ...['labels', 'finalizers', 'ownerReferences'].map((field) => `(${isSameField(field)})`),
  hasAnnotations('object', 'oldObject'),
  hasAnnotations('oldObject', 'object'),
].join(' && ');
