// Policies of all kinds and of all kinds of modules, for the kinds of audit-agreement-objects.ts.
import { valueAt } from '../../src/values/index.ts';
import type { KubernetesObject } from '../cluster/cluster.ts';

const API = 'policies.kubewarden.io/v1';

/** Examples that are applied, too: waPC, WASI, Rego in both modes, a group, Pod Security, and two that change objects. */
export const EXAMPLES = [
  'pod-privileged',
  'required-labels',
  'namespace-owner',
  'image-registries',
  'host-namespaces',
  'container-limits',
  'privileged-by-exception',
  'pod-security',
  'pinned-images',
  'replica-limit',
  'default-seccomp',
  'cost-center',
];

/** Whether the response to a request shows that a policy changed its object. */
export const CHANGES: Readonly<Record<string, (request: KubernetesObject, response: KubernetesObject) => boolean>> = {
  'cap/cost-center': (request, response) =>
    request.metadata.labels?.['cost-center'] !== response.metadata.labels?.['cost-center'],
  'cap/default-seccomp': (request, response) => seccompOf(request) !== seccompOf(response),
};

/** Policies that cannot be audited, with the reason. */
export const NOT_AUDITABLE: Readonly<Record<string, string>> = {
  'cap/agree-by-user': 'UserInfo',
  'cap/agree-shrinks': 'OldObject',
};

function seccompOf(object: KubernetesObject): string | undefined {
  return JSON.stringify(valueAt(object, 'spec', 'securityContext', 'seccompProfile'));
}

function rule(resource: string, group = '', more: object = {}): object {
  return { apiGroups: [group], apiVersions: ['v1'], resources: [resource], operations: ['CREATE', 'UPDATE'], ...more };
}

function cel(name: string, expression: string, rules: readonly object[], more: object = {}): KubernetesObject {
  const settings = { validations: [{ expression, message: `${name} says no` }] };
  const spec = { module: 'builtin:cel', mutating: false, settings, rules, ...more };
  return { apiVersion: API, kind: 'ClusterAdmissionPolicy', metadata: { name: `agree-${name}` }, spec };
}

function inNamespace(namespace: string, { metadata, ...rest }: KubernetesObject): KubernetesObject {
  return { ...rest, kind: 'AdmissionPolicy', metadata: { ...metadata, namespace } };
}

/** Policies of CEL with selectors, conditions, parameters, pod templates, stars, and reads of what servers add. */
export const AGREEMENT_POLICIES: readonly KubernetesObject[] = [
  cel('types', "object.spec.type in ['ClusterIP', 'ExternalName']", [rule('services')], {
    namespaceSelector: { matchLabels: { tier: 'prod' } },
  }),
  cel('hosts', "object.spec.rules.all(r, r.host.endsWith('.example.com')) && has(object.spec.tls)", [
    rule('ingresses', 'networking.k8s.io'),
  ]),
  cel('sizes', 'object.spec.size <= 10 && (!has(object.spec.parts) || object.spec.parts.size() > 0)', [
    rule('widgets', 'agreement.example', { apiVersions: ['v1beta1'] }),
  ]),
  cel('keys', 'object.?data.orValue({}).size() <= variables.most', [rule('configmaps')], {
    settings: {
      variables: [{ name: 'most', expression: '3' }],
      validations: [{ expression: 'object.?data.orValue({}).size() <= variables.most', message: 'too many keys' }],
    },
    parameters: {
      from: { namespace: { labels: ['max-keys'] } },
      overridable: ['variables'],
      settingsExpression: "{'variables': [{'name': 'most', 'expression': params.labels['max-keys']}]}",
    },
  }),
  cel('critical', 'object.metadata.labels.tier != "critical" || request.namespace == "prod"', [rule('*')], {
    objectSelector: { matchExpressions: [{ key: 'tier', operator: 'Exists' }] },
  }),
  cel('named', "'app.kubernetes.io/name' in object.metadata.labels", [rule('*', '*', { apiVersions: ['*'] })], {
    matchConditions: [
      {
        name: 'of-batch',
        expression: "has(object.metadata.labels) && object.metadata.labels.?tier.orValue('') == 'batch'",
      },
    ],
  }),
  cel(
    'host-ports',
    'object.spec.containers.all(c, !has(c.ports) || c.ports.all(p, !has(p.hostPort)))',
    [rule('pods')],
    {
      podTemplates: 'Enforce',
    },
  ),
  cel('claims', "quantity(object.spec.resources.requests.storage).compareTo(quantity('10Gi')) <= 0", [
    rule('persistentvolumeclaims'),
  ]),
  cel('budgets', 'object.spec.minAvailable > 0', [rule('poddisruptionbudgets', 'policy')]),
  cel('defaults', "object.spec.template.spec.restartPolicy == 'Always' && object.spec.progressDeadlineSeconds == 600", [
    rule('deployments', 'apps'),
  ]),
  cel('history', 'object.spec.successfulJobsHistoryLimit < 3', [rule('cronjobs', 'batch')]),
  cel('verbs', "object.rules.all(r, !('*' in r.verbs))", [rule('roles', 'rbac.authorization.k8s.io')]),
  inNamespace('play', cel('own', 'object.spec.ingress.size() == 0', [rule('networkpolicies', 'networking.k8s.io')])),
  inNamespace('held', cel('own', "object.spec.type != 'NodePort'", [rule('services')])),
  cel('by-user', "request.userInfo.username != 'nobody'", [rule('secrets')]),
  cel('shrinks', 'oldObject == null || object.data.size() >= oldObject.data.size()', [rule('configmaps')]),
];

const APART = { objectSelector: { matchLabels: { probe: 'yes' } } };

/** Policies that deny objects without a field that servers set, and what is seen of it: by an audit, and by a request to create. */
export const SERVER_FIELDS: readonly {
  readonly policy: KubernetesObject;
  readonly inAudit: boolean;
  readonly inRequest: boolean;
}[] = [
  { policy: cel('uid', 'has(object.metadata.uid)', [rule('pods')], APART), inAudit: true, inRequest: true },
  {
    policy: cel('created', 'has(object.metadata.creationTimestamp)', [rule('pods')], APART),
    inAudit: true,
    inRequest: true,
  },
  { policy: cel('address', 'has(object.spec.clusterIP)', [rule('services')], APART), inAudit: true, inRequest: true },
  {
    policy: cel('managed', 'has(object.metadata.managedFields)', [rule('pods')], APART),
    inAudit: false,
    inRequest: true,
  },
  { policy: cel('status', 'has(object.status)', [rule('pods')], APART), inAudit: false, inRequest: true },
  {
    policy: cel('generation', 'has(object.metadata.generation)', [rule('deployments', 'apps')], APART),
    inAudit: false,
    inRequest: true,
  },
  { policy: cel('node', 'has(object.spec.nodeName)', [rule('pods')], APART), inAudit: true, inRequest: false },
];
