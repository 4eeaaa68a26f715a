import { quote } from '../../go/index.ts';
import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  POLICIES_GROUP,
  POLICY_EXCEPTIONS,
  POLICY_REVISIONS,
  POLICY_SERVERS,
  PORTCULLIS_GROUP,
  MANAGED_BY,
} from '../../resources/index.ts';
import { CALLER_NAME_PREFIX, CALLERS_PATH } from './caller-proofs.ts';
import type { ContributedKinds } from './contributed-kinds.ts';
import type { GuardedKinds } from './guarded-kinds.ts';
import { clientConfig, type WebhookConfiguration, type WebhookTarget } from '../webhooks/webhook-object.ts';

export const OWN_KINDS_CONFIGURATION = 'portcullis-own-kinds';
/** The path of the endpoint for reviews of our own kinds. */
export const OWN_KINDS_PATH = '/validate-own-kinds';

/** The default of Kubernetes. Checks take milliseconds, but the controller may be busy or starting. */
const TIMEOUT_SECONDS = 10;

/** Of a webhook that is ignored when it does not answer: users wait so long for nothing. */
const IGNORED_TIMEOUT_SECONDS = 3;

const WRITES = ['CREATE', 'UPDATE'];

/**
 * The webhook configuration for our own kinds. It fails closed. This cannot lock users out: it covers our own kinds only, no
 * deletions, no writes of the controller, and no changes of other parts, so that garbage collection works while the endpoint
 * is down. It sets every field, so that a difference can be detected. The webhook of guarded kinds fails closed, too, since nothing else
 * decides who writes them. The webhooks of contributed kinds fail open: their rules mostly warn. So does the one for dry runs of
 * the controller, which prove the addresses of API servers.
 *
 * @param controllerUser the user name of the controller
 */
export function ownKindsConfiguration(
  target: WebhookTarget,
  controllerUser: string,
  contributed: readonly ContributedKinds[] = [],
  guarded: readonly GuardedKinds[] = [],
): WebhookConfiguration {
  const notTheController = {
    name: 'not-the-controller',
    expression: `request.userInfo.username != ${quote(controllerUser)}`,
  };
  const common = {
    admissionReviewVersions: ['v1'],
    clientConfig: clientConfig(target, OWN_KINDS_PATH),
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
    sideEffects: 'None',
    timeoutSeconds: TIMEOUT_SECONDS,
  };
  const rule = (apiGroups: readonly string[], resources: readonly string[]): object => ({
    apiGroups,
    apiVersions: ['v1'],
    resources,
    operations: WRITES,
    scope: '*',
  });
  const specs = [
    CLUSTER_ADMISSION_POLICIES,
    ADMISSION_POLICIES,
    CLUSTER_ADMISSION_POLICY_GROUPS,
    ADMISSION_POLICY_GROUPS,
    POLICY_SERVERS,
  ].map(({ resource }) => resource);
  const revisions = POLICY_REVISIONS.resource;
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: OWN_KINDS_CONFIGURATION, labels: MANAGED_BY },
    webhooks: [
      {
        name: 'policies.own-kinds.portcullis.dev',
        ...common,
        rules: [rule([POLICIES_GROUP], specs)],
        matchConditions: [
          notTheController,
          {
            name: 'spec-or-annotations-differ',
            expression:
              "request.operation == 'CREATE' || object.?spec != oldObject.?spec || object.metadata.?annotations != oldObject.metadata.?annotations",
          },
        ],
      },
      {
        name: 'revisions.own-kinds.portcullis.dev',
        ...common,
        rules: [rule([PORTCULLIS_GROUP], [revisions, `${revisions}/status`])],
        matchConditions: [
          notTheController,
          {
            name: 'spec-status-or-labels-differ',
            expression:
              "request.operation == 'CREATE' || object.?spec != oldObject.?spec || object.?status != oldObject.?status || object.metadata.?labels != oldObject.metadata.?labels",
          },
        ],
      },
      {
        name: 'exceptions.own-kinds.portcullis.dev',
        ...common,
        rules: [rule([PORTCULLIS_GROUP], [POLICY_EXCEPTIONS.resource])],
        matchConditions: [
          notTheController,
          { name: 'spec-differs', expression: "request.operation == 'CREATE' || object.?spec != oldObject.?spec" },
        ],
      },
      {
        name: 'callers.own-kinds.portcullis.dev',
        ...common,
        clientConfig: clientConfig(target, CALLERS_PATH),
        failurePolicy: 'Ignore',
        timeoutSeconds: IGNORED_TIMEOUT_SECONDS,
        rules: [{ ...rule([PORTCULLIS_GROUP], [revisions]), operations: ['CREATE'] }],
        matchConditions: [
          {
            name: 'dry-run-of-the-controller',
            expression: `request.userInfo.username == ${quote(controllerUser)} && has(request.dryRun) && request.dryRun && request.name.startsWith(${quote(CALLER_NAME_PREFIX)})`,
          },
        ],
      },
      ...guarded.map(({ name, kinds }) => ({
        name: `${name}.own-kinds.portcullis.dev`,
        ...common,
        rules: kinds.map(({ group, version, resource }) => ({
          ...rule([group], [resource, `${resource}/status`]),
          apiVersions: [version],
        })),
        matchConditions: [
          notTheController,
          {
            name: 'status-differs',
            expression: "request.operation == 'CREATE' || object.?status != oldObject.?status",
          },
        ],
      })),
      ...contributed.map(({ name, kinds }) => ({
        name: `${name}.own-kinds.portcullis.dev`,
        ...common,
        failurePolicy: 'Ignore',
        timeoutSeconds: IGNORED_TIMEOUT_SECONDS,
        rules: kinds.map(({ group, version, resource }) => ({ ...rule([group], [resource]), apiVersions: [version] })),
        matchConditions: [
          notTheController,
          { name: 'spec-differs', expression: "request.operation == 'CREATE' || object.?spec != oldObject.?spec" },
        ],
      })),
    ],
  };
}
