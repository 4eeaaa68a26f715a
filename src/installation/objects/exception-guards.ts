// Who writes PolicyExceptions: their spec with the right to except from each policy, their status the controller only.
import { EXCEPTION_GUARD, EXCEPTION_STATUS_GUARD } from '../../lifecycle/access-rules/index.ts';
import {
  type JsonObject,
  type KubernetesObject,
  MAX_EXCEPTION_POLICIES,
  POLICIES_GROUP,
  POLICY_EXCEPTIONS,
  PORTCULLIS_GROUP,
} from '../../resources/index.ts';
import { admissionGuard, controllerUser, quoted, serviceAccountName } from './admission-guard.ts';
import { AUDITOR, type InstallContext } from './naming.ts';

type Context = Pick<InstallContext, 'namespace'>;

const { resource } = POLICY_EXCEPTIONS;

const RESOURCES =
  "{'ClusterAdmissionPolicy': 'clusteradmissionpolicies', 'ClusterAdmissionPolicyGroup': 'clusteradmissionpolicygroups', 'AdmissionPolicy': 'admissionpolicies', 'AdmissionPolicyGroup': 'admissionpolicygroups'}";

/** One policy: an expression of an API server may ask for two rights, and all of a policy for 28. */
function mayExempt(index: number): JsonObject {
  const policies = 'object.spec.policies';
  const one = `${policies}[${index}]`;
  const resourceOf = `${RESOURCES}[${one}.kind]`;
  const asked = `authorizer.group(${quoted(POLICIES_GROUP)}).resource(${resourceOf})`;
  const inPlace = `(${one}.kind.startsWith('Cluster') ? ${asked} : ${asked}.namespace(request.namespace))`;
  return {
    expression: `${policies}.size() <= ${index} || ${inPlace}.name(${one}.name).check('exempt').allowed()`,
    message: 'the user needs the verb exempt on each policy of the exception',
    messageExpression: `'user ' + request.userInfo.username + ' needs the verb exempt on ' + ${resourceOf} + '.${POLICIES_GROUP} "' + ${one}.name + '"'`,
    reason: 'Forbidden',
  };
}

export function exceptionGuards(context: Context): readonly KubernetesObject[] {
  return [...exemptGuard(), ...exceptionStatusGuard(context)];
}

/**
 * API servers ask at each creation, and at each change of the spec, whether the user has the verb `exempt` on each policy. No process of
 * the product has to run for that.
 */
function exemptGuard(): readonly KubernetesObject[] {
  return admissionGuard({
    name: EXCEPTION_GUARD,
    why: 'Whoever may write PolicyExceptions in a namespace may not except from the policies of others: that takes the verb exempt on each policy, which nobody has unless an administrator grants it. The controller accepts no exception that was created before this policy.',
    apiGroup: PORTCULLIS_GROUP,
    resources: [resource],
    conditions: [
      {
        name: 'writes-spec',
        expression: "request.operation == 'CREATE' || (request.operation == 'UPDATE' && object.spec != oldObject.spec)",
      },
    ],
    validations: Array.from({ length: MAX_EXCEPTION_POLICIES }, (_, index) => mayExempt(index)),
  });
}

/** What the controller alone writes. */
const STATUS_FIELDS = Object.keys(POLICY_EXCEPTIONS.schema().properties?.['status']?.properties ?? {}).filter(
  (field) => field !== 'matched',
);

/** The auditor changes nothing but its own part of a status. */
function changesOnlyMatched(): string {
  const same = STATUS_FIELDS.map((field) => `object.?status.?${field} == oldObject.?status.?${field}`);
  return ["request.operation == 'UPDATE'", ...same].join(' && ');
}

/** Only the controller says what is accepted. */
export function exceptionStatusGuard(context: Context): readonly KubernetesObject[] {
  const user = controllerUser(context);
  const auditor = serviceAccountName(context, AUDITOR);
  return admissionGuard({
    name: EXCEPTION_STATUS_GUARD,
    why: 'An exception is in force once its status says that the controller has accepted it. So only the controller writes the status, whatever RBAC grants, and the auditor how many objects it is for.',
    apiGroup: PORTCULLIS_GROUP,
    resources: [`${resource}/status`],
    validations: [
      {
        expression: `request.userInfo.username == ${quoted(user)} || (request.userInfo.username == ${quoted(auditor)} && ${changesOnlyMatched()})`,
        message: 'only the controller of Portcullis writes the status of PolicyExceptions',
      },
    ],
  });
}
