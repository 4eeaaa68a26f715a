// Who writes the records of the product: PolicyRevisions decide what policy servers serve, PolicyServerReplicas where they are.
import { POLICY_SERVER_PREFIX } from '../../lifecycle/access-rules/index.ts';
import {
  CLUSTER_COLLECTORS,
  type JsonObject,
  type KubernetesObject,
  POLICY_REVISIONS,
  POLICY_SERVER_LABEL,
  POLICY_SERVER_REPLICAS,
  POLICY_UID_LABEL,
  PORTCULLIS_GROUP,
} from '../../resources/index.ts';
import { admissionGuard, controllerUser, quoted, serviceAccountName } from './admission-guard.ts';
import { AUDITOR, type InstallContext } from './naming.ts';

type Context = Pick<InstallContext, 'namespace'>;

const IS_UPDATE = "request.operation == 'UPDATE'";
const IS_DELETION = "request.operation == 'DELETE'";
/** Kubernetes deletes the objects of a namespace, and what an owner leaves behind. */
const IS_COLLECTOR = `request.userInfo.username in [${CLUSTER_COLLECTORS.map(quoted).join(', ')}]`;

export function recordGuards(context: Context): readonly KubernetesObject[] {
  return [...revisionGuard(context), ...replicaGuard(context)];
}

/** Whether nothing of the status differs but the preview. Types of fields are not needed, and depend on the schema that is served. */
const HAS_OTHER_PREVIEW_ONLY = `[dyn(object), dyn(oldObject)].all(one, one.?status.orValue({}).all(field, field == 'preview' || dyn(object).?status[?field] == dyn(oldObject).?status[?field]))`;

/**
 * Only the controller writes PolicyRevisions, and the auditor their previews, whatever RBAC grants: not even an administrator deletes one by mistake, which would
 * end the enforcement of its policy. An administrator who has to can impersonate the controller.
 */
function revisionGuard(context: Context): readonly KubernetesObject[] {
  const user = controllerUser(context);
  const { resource } = POLICY_REVISIONS;
  return admissionGuard({
    name: 'portcullis-revisions',
    why: `PolicyRevisions decide what policy servers serve. Whoever creates one serves a policy, whoever deletes one ends it. So only the controller does, whatever RBAC grants. In an emergency: kubectl --as=${user}`,
    apiGroup: PORTCULLIS_GROUP,
    resources: [resource, `${resource}/status`],
    conditions: [
      isIn(context),
      { name: 'is-not-controller', expression: `request.userInfo.username != ${quoted(user)}` },
    ],
    validations: [
      {
        expression: `${IS_UPDATE} || (${IS_DELETION} && ${IS_COLLECTOR})`,
        message: `only the controller of Portcullis creates and deletes PolicyRevisions: change the policy instead. In an emergency: kubectl --as=${user}`,
      },
      {
        expression: `!(${IS_UPDATE}) || (${[
          isSame('spec'),
          `(${isSame('status')} || (request.userInfo.username == ${quoted(serviceAccountName(context, AUDITOR))} && ${HAS_OTHER_PREVIEW_ONLY}))`,
          ...[POLICY_SERVER_LABEL, POLICY_UID_LABEL].map((label) => isSame(`metadata.?labels[?${quoted(label)}]`)),
        ].join(' && ')})`,
        message:
          'only the controller of Portcullis changes PolicyRevisions, and never their spec: change the policy instead',
      },
      {
        // An owner that does not exist would have the object deleted.
        expression: `!(${IS_UPDATE}) || ${IS_COLLECTOR} || (${['ownerReferences', 'finalizers']
          .map((field) => isSame(`metadata.?${field}`))
          .join(' && ')})`,
        message:
          'only the controller of Portcullis and the garbage collector change owners and finalizers of PolicyRevisions',
      },
    ],
  });
}

/** The claims of a token that is bound to a pod. */
const podClaim = (claim: string): string =>
  `request.userInfo.?extra[?'authentication.kubernetes.io/pod-${claim}'].orValue([])`;
/** Longest name of a PolicyServer that its pods have in theirs, which are cut after 58 characters and five more. */
const MAX_WHOLE_NAME = 30;

/**
 * A pod of the product writes only the PolicyServerReplica that has its name, and only for the PolicyServer of its Deployment. RBAC
 * cannot restrict a role that all pods have to an object for each.
 */
function replicaGuard(context: Context): readonly KubernetesObject[] {
  const { resource } = POLICY_SERVER_REPLICAS;
  const server = 'object.spec.policyServer';
  return admissionGuard({
    name: 'portcullis-replicas',
    why: 'RBAC cannot restrict the right to write PolicyServerReplicas to one object for each pod. This does: no policy server writes the report of another one, or joins another PolicyServer.',
    apiGroup: PORTCULLIS_GROUP,
    resources: [resource, `${resource}/status`],
    conditions: [
      isIn(context),
      {
        name: 'is-pod-of-portcullis',
        expression: `request.userInfo.username.startsWith(${quoted(`system:serviceaccount:${context.namespace}:`)}) && request.userInfo.username != ${quoted(controllerUser(context))} && ${podClaim('name')}.size() > 0`,
      },
    ],
    validations: [
      {
        expression: `request.name in ${podClaim('name')}`,
        message: 'a policy server writes only the PolicyServerReplica that has the name of its pod',
      },
      {
        expression: `${IS_DELETION} || ${server}.size() > ${MAX_WHOLE_NAME} || !${server}.matches('^[a-z0-9-]+$') || request.name.matches('^${POLICY_SERVER_PREFIX}' + ${server} + '-[a-z0-9]+-[a-z0-9]+$')`,
        message:
          'a policy server writes a PolicyServerReplica only for the PolicyServer whose Deployment created its pod',
      },
      {
        expression: `${IS_DELETION} || object.metadata.?ownerReferences.orValue([]).all(owner, owner.kind == 'Pod' && owner.uid in ${podClaim('uid')})`,
        message: 'a PolicyServerReplica is owned by the pod that writes it',
      },
    ],
  });
}

function isIn({ namespace }: Context): JsonObject {
  return { name: 'is-in-namespace', expression: `request.namespace == ${quoted(namespace)}` };
}

/** An expression by which an optional field is the same before and after. */
function isSame(field: string): string {
  const path = field.startsWith('metadata') ? field : `?${field}`;
  return `object.${path} == oldObject.${path}`;
}
