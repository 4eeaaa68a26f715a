// Scenario 13: a policy with parameters of the namespace, beside the webhook of another product, and with hostile parameters.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { ApiError } from '../../src/cluster/index.ts';
import type { JsonObject, KubernetesObject } from '../../src/resources/index.ts';
import { webhookConfiguration } from '../cluster/webhook-configuration.ts';
import { kind, type Policy, POLICIES, type RolloutLab } from './rollout-lab.ts';

const NAME = 'profiled';
const UID = 'example.com/uid';
const NAMESPACE = kind('v1', 'Namespace');
const POD = kind('v1', 'Pod');
/** Bytes of the annotations of one object, as API servers limit them. */
const MAX_ANNOTATIONS = 262_144;

/** Pods run as the user that their namespace names, and mount one folder of the node. */
const POLICY: Policy = {
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'ClusterAdmissionPolicy',
  metadata: { name: NAME },
  spec: {
    module: 'builtin:pod-profile',
    mutating: true,
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] }],
    namespaceSelector: { matchLabels: { scenario: NAME } },
    parameters: {
      from: { namespace: { annotations: [UID] } },
      overridable: ['runAsUser'],
      settingsExpression: `{'runAsUser': int(params.annotations['${UID}'])}`,
    },
    settings: {
      fsGroup: 'RunAsAny',
      supplementalGroups: 'RunAsAny',
      seLinux: 'RunAsAny',
      requiredDropCapabilities: ['ALL'],
      volumes: ['hostPath'],
      allowedHostPaths: [{ pathPrefix: '/data/project' }],
    },
  },
};

interface Container {
  readonly name: string;
  readonly securityContext?: JsonObject;
}

interface Pod extends KubernetesObject {
  readonly spec: { readonly securityContext?: JsonObject; readonly containers: readonly Container[] };
}

async function active(lab: RolloutLab): Promise<void> {
  await lab.create(POLICY);
  await lab.reaches(NAME, 'Active');
}

async function remove(lab: RolloutLab): Promise<void> {
  await lab.cluster.delete(POLICIES, { name: NAME });
}

async function tenant(lab: RolloutLab, name: string, annotations: Readonly<Record<string, string>>): Promise<void> {
  await lab.create({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { scenario: NAME }, annotations },
  });
}

async function annotate(lab: RolloutLab, name: string, annotations: JsonObject): Promise<void> {
  await lab.cluster.patch(NAMESPACE, { name }, { type: 'merge', body: { metadata: { annotations } } });
}

/** The pod that would be stored, or the message of the denial. */
async function created(lab: RolloutLab, namespace: string, labels: Readonly<Record<string, string>> = {}) {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'probe-', namespace, labels },
    spec: { containers: [{ name: 'main', image: 'example.com/main:1' } as Container] },
  };
  try {
    return { pod: (await lab.cluster.create<KubernetesObject>(POD, pod, { dryRun: true })) as Pod };
  } catch (error) {
    if (error instanceof ApiError) {
      return { message: error.message };
    }
    throw error;
  }
}

async function userIn(lab: RolloutLab, namespace: string): Promise<unknown> {
  const { pod, message } = await created(lab, namespace);
  return pod === undefined ? message : pod.spec.securityContext?.['runAsUser'];
}

/** Waits until pods of a namespace run as a user. */
async function runsAs(lab: RolloutLab, namespace: string, user: number): Promise<void> {
  let last: unknown;
  await lab.eventually(
    async () => {
      last = await userIn(lab, namespace);
      assert.equal(last, user);
    },
    () => `pods of ${namespace} to run as ${user}, last ${JSON.stringify(last)}`,
  );
}

/** A webhook of another product, which adds a container, and a folder of the node that the pod names. */
async function startInjector(lab: RolloutLab): Promise<AsyncDisposable & { readonly url: string }> {
  const { certFile, keyFile } = lab.certificates;
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (request, response) => {
    void text(request).then((body) => {
      const { uid, object } = (JSON.parse(body) as { request: { uid: string; object: Pod } }).request;
      const path = object.metadata.labels?.['inject'];
      const isDone = path === undefined || object.spec.containers.some(({ name }) => name === 'injected');
      const patch = [
        { op: 'add', path: '/spec/containers/-', value: { name: 'injected', image: 'example.com/injected:1' } },
        {
          op: 'add',
          path: '/spec/volumes',
          value: [{ name: 'injected', hostPath: { path: `/${path?.replaceAll('.', '/')}` } }],
        },
      ];
      const changes = { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
      const verdict = { uid, allowed: true, ...(isDone ? {} : changes) };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: verdict }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** What another webhook adds after ours is mutated and validated as well. */
export async function seesWhatOthersInject(lab: RolloutLab): Promise<void> {
  await using injector = await startInjector(lab);
  await tenant(lab, `${NAME}-a`, { [UID]: '5001' });
  await active(lab);
  // API servers call mutating webhooks in the order of the names of their configurations.
  const configuration = webhookConfiguration({
    name: 'zz-injector',
    kind: 'mutating',
    url: injector.url,
    caBundle: lab.ca,
    rules: [{ operations: ['CREATE'], resources: ['pods'] }],
    namespaceSelector: { matchLabels: { scenario: NAME } },
  });
  await lab.create(configuration);
  await runsAs(lab, `${NAME}-a`, 5001);
  const injected = await lab.eventually(
    async () => {
      const { pod } = await created(lab, `${NAME}-a`, { inject: 'data.project' });
      const container = pod?.spec.containers.find(({ name }) => name === 'injected');
      assert.ok(container !== undefined);
      return container;
    },
    () => 'the other webhook to be called',
  );
  assert.deepEqual(injected.securityContext, { capabilities: { drop: ['ALL'] } });
  const { message } = await created(lab, `${NAME}-a`, { inject: 'etc' });
  assert.match(message ?? '', /spec\.volumes\[0\]\.hostPath\.path: expected an allowed path, got "\/etc"/);
  await lab.cluster.delete(kind('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration'), {
    name: 'zz-injector',
  });
  await remove(lab);
}

/** Parameters that turn invalid are refused, and the status of the policy names their namespaces until they are valid again. */
export async function namesInvalidParameters(lab: RolloutLab): Promise<void> {
  const [good, bad] = [`${NAME}-good`, `${NAME}-bad`];
  await tenant(lab, good, { [UID]: '5002' });
  await tenant(lab, bad, { [UID]: '5003' });
  await active(lab);
  await runsAs(lab, good, 5002);
  await runsAs(lab, bad, 5003);
  const condition = async (status: string): Promise<string> => {
    const policy = await lab.reaches(NAME, 'Active', ({ conditions = [] }) =>
      conditions.some((one) => one.type === 'ParametersValid' && one.status === status),
    );
    return policy.status?.conditions?.find(({ type }) => type === 'ParametersValid')?.message ?? '';
  };

  await annotate(lab, bad, { [UID]: 'root' });
  assert.match(
    await condition('False'),
    /^1 of \d+ namespaces would be refused for their parameters: profiled-bad \(the parameters of the namespace "profiled-bad" are invalid: /,
  );
  assert.match(String(await userIn(lab, bad)), /the parameters of the namespace "profiled-bad" are invalid/);
  assert.equal(await userIn(lab, good), 5002);
  await annotate(lab, bad, { [UID]: '5004' });
  await condition('True');
  await runsAs(lab, bad, 5004);

  // Annotations that the policy does not list do not count, however many they are.
  const value = 'x'.repeat(1_000);
  const many = Array.from({ length: Math.floor(MAX_ANNOTATIONS / 1_100) }, (_, index) => [
    `example.com/n${index}`,
    value,
  ]);
  await annotate(lab, good, { ...Object.fromEntries(many), [UID]: '5005' } as JsonObject);
  await runsAs(lab, good, 5005);
  // A listed one of this size cannot be read, which `notFound` does not excuse.
  await annotate(lab, good, {
    ...Object.fromEntries(many.map(([key]) => [key, null])),
    [UID]: '5'.repeat(250_000),
  } as JsonObject);
  await lab.eventually(
    async () =>
      assert.match(
        String(await userIn(lab, good)),
        /the annotation example\.com\/uid of .* is too long: expected at most 32768 characters/,
      ),
    () => 'a long annotation to be refused',
  );

  // A namespace without the annotation has no parameters, and none of its pods are admitted.
  await annotate(lab, good, { [UID]: null });
  await lab.eventually(
    async () => assert.match(String(await userIn(lab, good)), /has none of the annotations example\.com\/uid/),
    () => 'pods without parameters to be refused',
  );
  await remove(lab);
}
