// `portcullis test` and `run` with objects as people write them: policies see the defaults of API servers.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { portcullis } from './command.ts';

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-defaults-'));
  await Promise.all(Object.entries(FILES).map(([name, text]) => writeFile(join(folder, name), text)));
});
after(() => rm(folder, { recursive: true }));

/** A policy for all operations on a resource. */
function policy(group: string, resource: string, expression: string): string {
  return JSON.stringify({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: resource },
    spec: {
      module: 'builtin:cel',
      mutating: false,
      rules: [{ apiGroups: [group], apiVersions: ['*'], resources: [resource], operations: ['CREATE', 'UPDATE'] }],
      settings: { validations: [{ expression }] },
    },
  });
}

/** What API servers set in an object of each kind before they ask policies. */
const DEFAULTS = [
  policy('apps', 'deployments', 'object.spec.replicas == 1 && object.spec.strategy.rollingUpdate.maxSurge == "25%"'),
  policy('apps', 'statefulsets', 'object.spec.podManagementPolicy == "OrderedReady"'),
  policy('apps', 'daemonsets', 'object.spec.updateStrategy.type == "RollingUpdate"'),
  policy('batch', 'jobs', 'object.spec.backoffLimit == 6 && object.spec.template.spec.dnsPolicy == "ClusterFirst"'),
  policy('batch', 'cronjobs', 'object.spec.concurrencyPolicy == "Allow" && !object.spec.suspend'),
  policy('autoscaling', 'horizontalpodautoscalers', 'object.spec.minReplicas == 1'),
  policy('networking.k8s.io', 'networkpolicies', '"Egress" in object.spec.policyTypes'),
  policy(
    '',
    'services',
    'object.spec.type == "ClusterIP" && object.spec.ports.all(p, p.protocol == "TCP" && p.targetPort == 80)',
  ),
  policy(
    '',
    'pods',
    'object.spec.containers.all(c, c.imagePullPolicy == "Always" && c.resources.requests["cpu"] == "1") && object.spec.tolerations.size() == 2',
  ),
  policy('', 'secrets', 'object.type == "Opaque" && object.data.key == "dGV4dA==" && !has(object.stringData)'),
  policy('', 'namespaces', 'object.metadata.labels["kubernetes.io/metadata.name"] == "shop"'),
  policy('', 'persistentvolumeclaims', 'object.spec.volumeMode == "Filesystem"'),
  policy('rbac.authorization.k8s.io', 'rolebindings', 'object.subjects[0].apiGroup == "rbac.authorization.k8s.io"'),
].join('\n---\n');

const TEMPLATE =
  '{metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: web, image: web}]}}';
const WORKLOAD = `spec: {selector: {matchLabels: {app: web}}, template: ${TEMPLATE}}`;

const OBJECTS = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, ${WORKLOAD}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}, ${WORKLOAD}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web}, ${WORKLOAD}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: web}, spec: {template: ${TEMPLATE}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: web}, spec: {schedule: '@daily', jobTemplate: {spec: {template: ${TEMPLATE}}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {}, egress: [{}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: 'web:latest', resources: {limits: {cpu: 1000m}}}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: web}, stringData: {key: text}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web}, spec: {accessModes: [ReadWriteOnce]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {kind: Role, name: web}
subjects: [{kind: User, name: alice}]
`;

const SERVICE = '{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}';

const DEFINITION = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {size: {type: integer, default: 3}}}}
`;
const WIDGET = '{apiVersion: example.com/v1, kind: Widget, metadata: {name: one}, spec: {colour: red}}';
const SIZE = policy('example.com', 'widgets', 'object.spec.size == 3 && !has(object.spec.colour)');

const FILES = {
  'policies.yaml': DEFAULTS,
  'objects.yaml': OBJECTS,
  'service.yaml': SERVICE,
  'no-cluster-ip.yaml': policy('', 'services', "object.spec.?type.orValue('') != 'ClusterIP'"),
  'allocated.yaml': policy(
    '',
    'services',
    '!has(object.spec.clusterIP) && !has(object.metadata.uid) && !has(object.status)',
  ),
  'same-type.yaml': policy('', 'services', 'request.operation == "UPDATE" && oldObject.spec.type == object.spec.type'),
  'size.yaml': SIZE,
  'definition.yaml': DEFINITION,
  'widget.yaml': WIDGET,
  'malformed.yaml': '{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: {port: 80}}}',
  'parameters.yaml': `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sized}
spec:
  paramKind: {apiVersion: example.com/v1, kind: Widget}
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [services]}]}
  validations: [{expression: params.spec.size == 3}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: sized}
spec: {policyName: sized, validationActions: [Deny], paramRef: {name: one, parameterNotFoundAction: Deny}}
---
{apiVersion: example.com/v1, kind: Widget, metadata: {name: one, namespace: default}, spec: {}}
---${DEFINITION}`,
  'services.portcullis-test.yml': `
policy: same-type.yaml
cases:
  - name: the type stays
    oldObject: ${SERVICE}
    object: ${SERVICE}
    expect: {allowed: true}
`,
  'widgets.portcullis-test.yml': `
policy: {manifests: [size.yaml, definition.yaml]}
cases:
  - name: the default size
    object: ${WIDGET}
    expect: {allowed: true}
`,
  'labels.portcullis-test.yml': `
policy:
  module: builtin:cel
  settings:
    mutations:
      - patchType: JSONPatch
        jsonPatch: {expression: '[JSONPatch{op: "add", path: "/metadata/labels", value: {"owner": "shop"}}]'}
cases:
  - name: the rest stays as it is
    object: ${SERVICE}
    expect:
      allowed: true
      object: {apiVersion: v1, kind: Service, metadata: {name: web, labels: {owner: shop}}, spec: {ports: [{port: 80}]}}
`,
};

const command = (...args: readonly string[]): ReturnType<typeof portcullis> => portcullis(args, { cwd: folder });

describe('an object of a file', { concurrency: 2 }, () => {
  it('has the defaults of its kind', async () => {
    const { stdout, code } = await command('test', '-p', 'policies.yaml', 'objects.yaml');
    assert.equal(code, 0, stdout);
    assert.match(stdout, /13 resources, 13 policies: 13 pass, /);
  });

  it('is denied for a default, as in a cluster', async () => {
    const { stdout, code } = await command('test', '-p', 'no-cluster-ip.yaml', 'service.yaml');
    assert.equal(code, 1);
    assert.match(stdout, /^Service web +cap\/services +fail/m);
  });

  it('has nothing that API servers allocate', async () => {
    const { stdout, code } = await command('test', '-p', 'allocated.yaml', 'service.yaml');
    assert.equal(code, 0, stdout);
  });

  it('has defaults before a change, too', async () => {
    const { stdout, code } = await command('test', '-p', 'same-type.yaml', 'service.yaml', '--old', 'service.yaml');
    assert.equal(code, 0, stdout);
  });

  it('has the defaults of a CustomResourceDefinition that is given, and loses unknown fields with a note', async () => {
    const { stdout, stderr, code } = await command('test', '-p', 'size.yaml', 'definition.yaml', 'widget.yaml');
    assert.equal(code, 0, stdout);
    assert.match(stderr, /^note: Widget one has unknown fields, which API servers drop: spec\.colour$/m);
  });

  it('has its defaults as a parameter', async () => {
    const { stdout, code } = await command('test', '-p', 'parameters.yaml', 'service.yaml');
    assert.equal(code, 0, stdout);
  });

  it('is left as it is if API servers cannot read it, with a note', async () => {
    const { stderr } = await command('test', '-p', 'allocated.yaml', 'malformed.yaml');
    assert.match(stderr, /^note: Service web would be refused by API servers: .*cannot unmarshal object.*spec\.ports/m);
  });

  it('has defaults in run, also of a definition among the manifests', async () => {
    const [service, widget] = await Promise.all([
      command('run', 'no-cluster-ip.yaml', '-r', 'service.yaml', '--fail-on', 'deny'),
      command('run', 'size.yaml', '--manifests', 'definition.yaml', '-r', 'widget.yaml', '--fail-on', 'deny'),
    ]);
    assert.deepEqual([service.code, widget.code], [1, 0], widget.stderr);
  });

  for (const suite of ['services', 'widgets', 'labels']) {
    it(`has defaults in the test file of ${suite}`, async () => {
      const { stdout, code } = await command('test', `${suite}.portcullis-test.yml`);
      assert.equal(code, 0, stdout);
    });
  }
});
