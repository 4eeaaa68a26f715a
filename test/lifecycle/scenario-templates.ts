// Scenario 14: policies for pods that check the pod templates of workloads.
import assert from 'node:assert/strict';
import { ApiError } from '../../src/cluster/index.ts';
import { ANNOTATIONS, type JsonObject, type KubernetesObject, keyOf } from '../../src/resources/index.ts';
import { kind, type Policy, POLICIES, type RolloutLab } from './rollout-lab.ts';

const NAME = 'templated';
const DEPLOYMENT = kind('apps/v1', 'Deployment');

function policy(name: string, spec: JsonObject, annotations: Readonly<Record<string, string>> = {}): Policy {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: `${NAME}-${name}`, annotations },
    spec: {
      module: 'builtin:cel',
      podTemplates: 'Enforce',
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] }],
      namespaceSelector: { matchLabels: { scenario: NAME } },
      ...spec,
    },
  };
}

/** Rejects images without a tag, of pods with a label that workloads do not have. API servers evaluate conditions of its pods. */
const PINNED = policy(
  'pinned',
  {
    mutating: false,
    objectSelector: { matchLabels: { app: NAME } },
    matchConditions: [{ name: 'has-containers', expression: 'object.spec.containers.size() > 0' }],
    settings: {
      validations: [{ expression: "object.spec.containers.all(c, c.image.contains(':'))", message: 'no tag' }],
    },
  },
  { [ANNOTATIONS.webhook]: 'Own' },
);

const MARK = `[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'marked-by': request.userInfo.username}}]`;
const MARKED = policy('marked', {
  mutating: true,
  settings: { mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: MARK } }] },
});

function template(image: string): JsonObject {
  return {
    metadata: { labels: { app: NAME } },
    spec: { containers: [{ name: 'main', image }] },
  };
}

interface Deployment extends KubernetesObject {
  readonly spec: { readonly replicas?: number; readonly template: JsonObject };
}

function deployment(name: string, image: string): Deployment {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: NAME },
    spec: { selector: { matchLabels: { app: NAME } }, template: template(image) } as Deployment['spec'],
  };
}

function cronJob(image: string): KubernetesObject {
  const { metadata = null, spec: ofPod } = template(image);
  const pod = { metadata, spec: { ...(ofPod as JsonObject), restartPolicy: 'Never' } };
  const spec = { schedule: '@daily', jobTemplate: { spec: { template: pod } } };
  const made = { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'cron', namespace: NAME }, spec };
  return made;
}

function withSpec(object: Deployment, spec: object): Deployment {
  return { ...object, spec: { ...object.spec, ...spec } };
}

/** The message of the denial; undefined when the request is admitted. */
async function denial(request: Promise<unknown>): Promise<string | undefined> {
  try {
    await request;
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error.message;
  }
}

export async function checksPodTemplates(lab: RolloutLab): Promise<void> {
  const { cluster } = lab;
  await lab.namespace(NAME);
  const old = (await cluster.create(DEPLOYMENT, deployment('old', 'nginx'))) as Deployment;
  for (const one of [PINNED, MARKED]) {
    await lab.create(one);
    await lab.reaches(one.metadata.name ?? '', 'Active');
  }
  const create = (object: KubernetesObject): Promise<KubernetesObject> =>
    cluster.create(kind(object.apiVersion, object.kind), object, { dryRun: true });

  await lab.eventually(
    async () =>
      assert.match(
        (await denial(create(deployment('new', 'nginx')))) ?? '',
        /"validating\.ignore\.equivalent\.cluster\.templates\.portcullis\.dev" denied .*: cap\/templated-pinned: in the pod template \(spec\.template\): no tag/,
      ),
    () => 'a Deployment to be denied',
  );
  assert.match(
    (await denial(create(cronJob('nginx')))) ?? '',
    /in the pod template \(spec\.jobTemplate\.spec\.template\): no tag/,
  );
  assert.equal(await denial(create(cronJob('nginx:1'))), undefined);

  // The pods are changed by their creators, and so are the templates.
  const made = (await create(deployment('new', 'nginx:1'))) as Deployment;
  assert.deepEqual((made.spec.template['metadata'] as JsonObject)['annotations'], {
    'marked-by': 'system:serviceaccount:kube-system:replicaset-controller',
  });

  // What is older than the policies can be scaled, but gets no other template without a tag.
  const { items } = await cluster.list(DEPLOYMENT, { namespace: NAME });
  const current = items.find(({ metadata }) => metadata.name === keyOf(old).name) as Deployment;
  const updated = (spec: object): Promise<unknown> =>
    cluster.update<KubernetesObject>(DEPLOYMENT, withSpec(current, spec), { dryRun: true });
  assert.equal(await denial(updated({ replicas: 2 })), undefined);
  assert.match((await denial(updated({ template: template('redis') }))) ?? '', /no tag/);

  await lab.change(keyOf(PINNED).name, { podTemplates: 'Warn' });
  await lab.eventually(
    async () => assert.equal(await denial(create(deployment('new', 'nginx'))), undefined),
    () => 'a Deployment to be admitted with a warning',
  );
  const metadata = { name: 'new', namespace: NAME, labels: { app: NAME } };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: template('nginx')['spec'] } as KubernetesObject;
  assert.match((await denial(create(pod))) ?? '', /"kw\.cap\.templated-pinned\.portcullis\.dev" denied .*: no tag/);
  for (const one of [PINNED, MARKED]) {
    await cluster.delete(POLICIES, keyOf(one));
  }
}
