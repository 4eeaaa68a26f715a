// ValidatingAdmissionPolicies that limit who writes what, where RBAC cannot.
import type { JsonObject, KubernetesObject } from '../../resources/index.ts';
import { commented } from './comments.ts';
import { componentLabels, CONTROLLER, type InstallContext } from './naming.ts';

interface AdmissionGuard {
  readonly name: string;
  /** Why it exists: a comment in the manifest. */
  readonly why: string;
  readonly apiGroup: string;
  readonly resources: readonly string[];
  readonly conditions?: readonly JsonObject[];
  readonly validations: readonly JsonObject[];
}

/** The policy and its binding. */
export function admissionGuard({
  name,
  why,
  apiGroup,
  resources,
  conditions = [],
  validations,
}: AdmissionGuard): readonly KubernetesObject[] {
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
        ...(conditions.length === 0 ? {} : { matchConditions: conditions }),
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

/** A guard that limits the controller. */
export function controllerGuard(
  context: Pick<InstallContext, 'namespace'>,
  { conditions = [], ...guard }: AdmissionGuard,
): readonly KubernetesObject[] {
  return admissionGuard({
    ...guard,
    conditions: [
      { name: 'is-controller', expression: `request.userInfo.username == ${quoted(controllerUser(context))}` },
      ...conditions,
    ],
  });
}

/** The name of the controller as a user. */
export function controllerUser(context: Pick<InstallContext, 'namespace'>): string {
  return serviceAccountName(context, CONTROLLER);
}

/** The name of an account of the product as a user. */
export function serviceAccountName({ namespace }: Pick<InstallContext, 'namespace'>, account: string): string {
  return `system:serviceaccount:${namespace}:${account}`;
}

/** A CEL string of a text without quotes and backslashes. */
export function quoted(text: string): string {
  return `'${text}'`;
}
