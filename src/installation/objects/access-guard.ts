// Limits of the controller's rights that RBAC cannot express.
import { ACCESS_REVIEW_RULES, POLICY_SERVER_CLUSTER_ROLE_PREFIX } from '../../lifecycle/access-rules/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { controllerGuard, quoted } from './admission-guard.ts';
import type { InstallContext } from './naming.ts';

const PREFIX = quoted(POLICY_SERVER_CLUSTER_ROLE_PREFIX);
const IS_DELETION = "request.operation == 'DELETE'";
const IS_ROLE = "request.resource.resource == 'clusterroles'";
const IS_BINDING = "request.resource.resource == 'clusterrolebindings'";

/**
 * A ValidatingAdmissionPolicy for the controller: it writes only the ClusterRoles and ClusterRoleBindings of policy servers, these
 * roles only read, and only service accounts of the product get them. RBAC cannot restrict rights to a prefix of names, and the
 * names of PolicyServers are not known at installation.
 */
export function accessGuard(context: Pick<InstallContext, 'namespace'>): readonly KubernetesObject[] {
  const { namespace } = context;
  return controllerGuard(context, {
    name: 'portcullis-cluster-roles',
    why: 'RBAC cannot restrict the right to write ClusterRoles to a prefix of names, and the names of PolicyServers are not known at installation. This does: the controller writes only the roles of policy servers, which only read, and binds them to service accounts of its namespace.',
    apiGroup: 'rbac.authorization.k8s.io',
    resources: ['clusterroles', 'clusterrolebindings'],
    // `dyn`: API servers check the types of expressions against both kinds.
    validations: [
      {
        expression: `request.name.startsWith(${PREFIX})`,
        message: `the controller of Portcullis writes only objects whose names begin with ${POLICY_SERVER_CLUSTER_ROLE_PREFIX}`,
      },
      {
        expression: `${IS_DELETION} || ${IS_BINDING} || dyn(object).rules.all(rule, rule.verbs.all(verb, verb in ['get', 'list', 'watch']) || ${IS_ACCESS_REVIEW})`,
        message: 'the controller of Portcullis grants policy servers only the right to read, and to review access',
      },
      {
        expression: `${IS_DELETION} || ${IS_ROLE} || (dyn(object).roleRef.name.startsWith(${PREFIX}) && dyn(object).subjects.all(subject, subject.kind == 'ServiceAccount' && subject.namespace == ${quoted(namespace)}))`,
        message: `the controller of Portcullis binds only roles of policy servers, to service accounts of its namespace`,
      },
    ],
  });
}

/** A rule of {@link ACCESS_REVIEW_RULES} in CEL. */
const IS_ACCESS_REVIEW = ACCESS_REVIEW_RULES.map(({ apiGroups, resources, verbs }) =>
  Object.entries({ apiGroups, resources, verbs })
    .map(([field, values]) => `rule.${field} == [${values.map(quoted).join(', ')}]`)
    .join(' && '),
).join(' || ');
