// ValidatingAdmissionPolicies that limit the controller where RBAC cannot.
import type { JsonObject, KubernetesObject } from '../../../resources/index.ts';
import { commented } from './comments.ts';
import { componentLabels, CONTROLLER, type InstallContext } from './naming.ts';

interface ControllerGuard {
  readonly name: string;
  /** Why it exists: a comment in the manifest. */
  readonly why: string;
  readonly apiGroup: string;
  readonly resources: readonly string[];
  /** Further conditions, besides that the controller writes. Default: none. */
  readonly conditions?: readonly JsonObject[];
  readonly validations: readonly JsonObject[];
}

/** The policy and its binding. */
export function controllerGuard(
  { namespace }: Pick<InstallContext, 'namespace'>,
  { name, why, apiGroup, resources, conditions = [], validations }: ControllerGuard,
): readonly KubernetesObject[] {
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const metadata = { name, labels: componentLabels('controller') };
  const operations = ['CREATE', 'UPDATE', 'DELETE'];
  return [
    commented(why, {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata,
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: { resourceRules: [{ apiGroups: [apiGroup], apiVersions: ['*'], operations, resources }] },
        matchConditions: [
          {
            name: 'is-controller',
            expression: `request.userInfo.username == ${quoted(`system:serviceaccount:${namespace}:${CONTROLLER}`)}`,
          },
          ...conditions,
        ],
        validations,
      },
    }),
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ];
}

/** A CEL string of a text without quotes and backslashes. */
export function quoted(text: string): string {
  return `'${text}'`;
}
