// Compares webhook admission of the embedded cluster with a real kube-apiserver: reviews, and responses to clients.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { WebhookAdmission } from '../../src/apiserver/embedded/admission/webhook-admission.ts';
import { RbacAuthorizer } from '../../src/apiserver/embedded/authorization/rbac-authorizer.ts';
import type { AdmissionAttributes, UserInfo } from '../../src/apiserver/embedded/request/request.ts';
import { ListedState } from '../../src/apiserver/embedded/testing/listed-state.ts';
import { selfSigned } from '../../src/apiserver/embedded/testing/self-signed.ts';
import { type Behaviour, WebhookRecorder } from '../../src/apiserver/embedded/testing/webhook-recorder.ts';
import { SERVED_KINDS } from '../../src/apiserver/index.ts';
import { servedKind } from '../../src/apiserver/testing/served-kind.ts';
import { ApiError } from '../../src/cluster/index.ts';
import type { KubernetesObject } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const NAMESPACE = 'hooked';
const ADMIN: UserInfo = { username: 'admin', uid: 'admin', groups: ['system:masters', 'system:authenticated'] };

const patch = (operations: unknown): Readonly<Record<string, unknown>> => ({
  allowed: true,
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
});

/** Responses of webhooks, by name. */
const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  denied: () => ({ response: { allowed: false } }),
  'denied-empty-status': () => ({ response: { allowed: false, status: {} } }),
  'denied-message': () => ({ response: { allowed: false, status: { message: 'no "such" thing' } } }),
  'denied-reason': () => ({ response: { allowed: false, status: { reason: 'Forbidden' } } }),
  'denied-all': () => ({
    response: {
      allowed: false,
      status: {
        code: 418,
        reason: 'Teapot',
        message: 'short and stout',
        details: { causes: [{ message: 'x', field: 'y' }] },
      },
    },
  }),
  'denied-ok-code': () => ({ response: { allowed: false, status: { code: 200, status: 'Success', message: 'm' } } }),
  'no-allowed': () => ({ response: {} }),
  'no-response': ({ apiVersion, kind }) => ({ body: JSON.stringify({ apiVersion, kind }) }),
  'wrong-uid': () => ({ response: { uid: 'other', allowed: true } }),
  'no-uid': ({ apiVersion, kind }) => ({ body: JSON.stringify({ apiVersion, kind, response: { allowed: true } }) }),
  'no-kind': ({ request }) => ({ body: JSON.stringify({ response: { uid: request.uid, allowed: true } }) }),
  'not-json': () => ({ body: 'hello' }),
  'cut-json': () => ({ body: '{"apiVersion":' }),
  'text-json': () => ({ body: '"hello"' }),
  'list-json': () => ({ body: '[]' }),
  'null-json': () => ({ body: 'null' }),
  empty: () => ({ body: '' }),
  'status-404': () => ({ status: 404, body: 'nothing here' }),
  'status-500': () => ({ status: 500, body: 'it "broke"' }),
  'status-503': () => ({ status: 503, body: 'busy' }),
  'status-403': () => ({ status: 403, body: 'go away' }),
  'status-400': () => ({ status: 400, body: 'what?' }),
  'status-401': () => ({ status: 401, body: 'who?' }),
  'status-418': () => ({ status: 418, body: 'tea' }),
  'status-302-no-place': () => ({ status: 302, body: '' }),
  'hangs-up': () => ({ hangsUp: true }),
  silent: () => ({ isSilent: true }),
  'patch-in-validation': () => ({ response: patch([]) }),
  warns: () => ({ response: { allowed: true, warnings: ['one', 'two', 'one', ''] } }),
  'warns-and-denies': () => ({ response: { allowed: false, warnings: ['careful'] } }),
  patches: () => ({ response: patch([{ op: 'add', path: '/data', value: { a: '1' } }]) }),
  'patch-without-type': () => ({ response: { allowed: true, patch: 'W10=' } }),
  'type-without-patch': () => ({ response: { allowed: true, patchType: 'JSONPatch' } }),
  'other-patch-type': () => ({ response: { ...patch([{ op: 'add', path: '/data', value: {} }]), patchType: 'Merge' } }),
  'patch-not-json': () => ({
    response: { allowed: true, patchType: 'JSONPatch', patch: Buffer.from('{').toString('base64') },
  }),
  'patch-not-list': () => ({ response: patch({ op: 'add' }) }),
  'patch-nowhere': () => ({ response: patch([{ op: 'remove', path: '/data/x' }]) }),
  'patch-test': () => ({ response: patch([{ op: 'test', path: '/kind', value: 'Pod' }]) }),
};

interface Scenario {
  readonly kind: 'validating' | 'mutating';
  /** The name of the response. */
  readonly path: string;
  /** The `clientConfig`. Default: that of the recorder. */
  readonly client?: (recorder: WebhookRecorder) => object;
  /** Additional fields of the webhook. */
  readonly webhook?: Readonly<Record<string, unknown>>;
}

const validating = (path: string, rest: Partial<Scenario> = {}): Scenario => ({ kind: 'validating', path, ...rest });
const mutating = (path: string, rest: Partial<Scenario> = {}): Scenario => ({ kind: 'mutating', path, ...rest });
const condition = (expression: string): Readonly<Record<string, unknown>> => ({
  matchConditions: [{ name: 'c', expression }],
});

const encoded = (pem: string): string => Buffer.from(pem).toString('base64');

const MUTATING_ONLY = new Set([
  'patches',
  'patch-without-type',
  'type-without-patch',
  'other-patch-type',
  'patch-not-json',
  'patch-not-list',
  'patch-nowhere',
  'patch-test',
]);

/** Scenarios by name. The webhook of each matches only objects with its label. */
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  ...Object.fromEntries(
    Object.keys(BEHAVIOURS)
      .filter((path) => !MUTATING_ONLY.has(path) && path !== 'silent')
      .map((path) => [path, validating(path)]),
  ),
  ...Object.fromEntries([...MUTATING_ONLY, 'denied-message', 'not-json'].map((path) => [`m-${path}`, mutating(path)])),
  silent: validating('silent', { webhook: { timeoutSeconds: 1 } }),
  'm-silent': mutating('silent', { webhook: { timeoutSeconds: 1 } }),
  ignored: validating('not-json', { webhook: { failurePolicy: 'Ignore' } }),
  'm-ignored': mutating('patch-not-json', { webhook: { failurePolicy: 'Ignore' } }),
  'm-ignored-patch': mutating('patch-nowhere', { webhook: { failurePolicy: 'Ignore' } }),
  'ignored-denied': validating('denied', { webhook: { failurePolicy: 'Ignore' } }),
  refused: validating('x', { client: () => ({ url: 'https://127.0.0.1:1/x' }) }),
  'no-service': validating('x', { client: () => ({ service: { namespace: NAMESPACE, name: 'no-such', path: '/x' } }) }),
  service: validating('denied', {
    client: ({ port }) => ({ service: { namespace: NAMESPACE, name: 'outside', path: '/denied', port } }),
  }),
  'service-name': validating('denied', {
    client: ({ port }) => ({ service: { namespace: NAMESPACE, name: 'unnamed', path: '/denied', port } }),
  }),
  'no-port': validating('x', { client: () => ({ service: { namespace: NAMESPACE, name: 'inside', port: 81 } }) }),
  'no-host': validating('x', { client: () => ({ url: 'https://nowhere.invalid/x' }) }),
  'condition-false': validating('denied', { webhook: condition('object.metadata.name == "other"') }),
  'condition-true': validating('denied', {
    webhook: condition('request.userInfo.username == "admin" && oldObject == null && request.kind.kind == "ConfigMap"'),
  }),
  'condition-error': validating('denied', { webhook: condition('object.data.x == "y"') }),
  'condition-error-ignored': validating('denied', {
    webhook: { ...condition('object.data.x == "y"'), failurePolicy: 'Ignore' },
  }),
  'condition-authorizer': validating('denied', {
    webhook: condition(
      'authorizer.requestResource.check("delete").allowed() && authorizer.group("apps").resource("deployments").check("get").reason() == ""',
    ),
  }),
};

function configurationOf(
  name: string,
  scenario: Scenario,
  recorder: WebhookRecorder,
  caBundle?: string,
): KubernetesObject {
  const { kind, path, client, webhook } = scenario;
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: kind === 'validating' ? 'ValidatingWebhookConfiguration' : 'MutatingWebhookConfiguration',
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.com`,
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
        objectSelector: { matchLabels: { scenario: name } },
        clientConfig: {
          caBundle: encoded(caBundle ?? recorder.certificate.cert),
          ...(client?.(recorder) ?? { url: recorder.url(path) }),
        },
        ...webhook,
      },
    ],
  };
}

const configMap = (name: string, scenario = name): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: NAMESPACE, labels: { scenario } },
});

const externalName = (name: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: NAMESPACE },
  spec: { type: 'ExternalName', externalName: 'localhost' },
});

const collections: Readonly<Record<string, string>> = {
  ValidatingWebhookConfiguration: '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
  MutatingWebhookConfiguration: '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  Service: `/api/v1/namespaces/${NAMESPACE}/services`,
};

const hooks = { timeout: 120_000 };

describe('answers of webhooks', { skip: skipWithoutCluster(), ...hooks }, () => {
  let cluster: Cluster;
  let recorder: WebhookRecorder;
  let plain: ReturnType<typeof createServer>;
  let state: ListedState;
  let admission: WebhookAdmission;
  let scenarios: Readonly<Record<string, Scenario>>;

  before(async () => {
    cluster = await startCluster();
    recorder = await WebhookRecorder.start(BEHAVIOURS, [`outside.${NAMESPACE}.svc`]);
    plain = createServer((_request, response) => response.end('hello'));
    plain.listen(0, '127.0.0.1');
    await once(plain, 'listening');
    const address = plain.address();
    const plainPort = typeof address === 'object' && address !== null ? address.port : 0;
    await cluster.createNamespace(NAMESPACE);
    scenarios = {
      ...SCENARIOS,
      'plain-http': validating('x', { client: () => ({ url: `https://127.0.0.1:${plainPort}/x` }) }),
    };
    const other = await selfSigned();
    const inside = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'inside', namespace: NAMESPACE },
      spec: { ports: [{ port: 80 }], clusterIP: '10.0.0.77' },
    };
    const objects = [
      ...Object.entries(scenarios).map(([name, scenario]) => configurationOf(name, scenario, recorder)),
      configurationOf('unknown-authority', validating('denied'), recorder, other.cert),
      externalName('outside'),
      externalName('unnamed'),
      inside,
      // Created last. When these are called, the API server has loaded all configurations.
      configurationOf('zz-ready', validating('denied'), recorder),
      configurationOf('zz-m-ready', mutating('denied'), recorder),
    ];
    for (const object of objects) {
      await cluster.expect('POST', collections[object.kind] ?? '', object);
    }
    state = new ListedState([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }, ...objects]);
    admission = new WebhookAdmission({
      state,
      authorizer: new RbacAuthorizer(state),
      definitions: () => SERVED_KINDS,
    });
    for (const name of ['zz-ready', 'zz-m-ready', 'service', 'no-port']) {
      await eventually(async () => {
        const { status } = await real(configMap(name));
        assert.ok(status >= 400, `the API server calls ${name}`);
      });
    }
  }, hooks);
  after(async () => {
    admission.close();
    plain.close();
    await recorder[Symbol.asyncDispose]();
    await cluster.stop();
  });

  async function real(
    object: KubernetesObject,
  ): Promise<{ status: number; body: unknown; warnings: readonly string[] }> {
    const path = `/api/v1/namespaces/${NAMESPACE}/configmaps?dryRun=All`;
    const { status, body, headers } = await cluster.request('POST', path, object);
    const warnings = [headers.warning ?? []]
      .flat()
      .flatMap((one) => one.split(/, (?=299 )/u))
      .map((one) => one.replace(/^299 - "(?<text>.*)"$/u, '$<text>'));
    return { status, body, warnings };
  }

  async function own(
    object: KubernetesObject,
  ): Promise<{ status: number; body: unknown; warnings: readonly string[] }> {
    const definition = servedKind('v1', 'ConfigMap');
    assert.ok(definition !== undefined);
    const warnings: string[] = [];
    const request: AdmissionAttributes = {
      user: ADMIN,
      operation: 'CREATE',
      definition,
      subresource: undefined,
      namespace: NAMESPACE,
      name: object.metadata.name ?? '',
      object,
      oldObject: null,
      dryRun: true,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', dryRun: ['All'] },
    };
    try {
      const mutated = await admission.mutate(request, (text) => warnings.push(text));
      await admission.validate({ ...request, object: mutated }, (text) => warnings.push(text));
      return { status: 201, body: mutated, warnings };
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      return { status: error.code, body: error.toStatus(), warnings };
    }
  }

  it('become the same answers to clients', async (t) => {
    for (const name of [...Object.keys(scenarios), 'unknown-authority']) {
      await t.test(name, async () => {
        const [expected, actual] = await Promise.all([real(configMap(name)), own(configMap(name))]);
        assert.deepEqual(simplified(actual.body), simplified(expected.body));
        assert.equal(actual.status, expected.status);
        assert.deepEqual(actual.warnings, expected.warnings);
      });
    }
  });
});

/** Removes fields that the server sets, and values that depend on the call or the machine. */
function simplified(body: unknown): unknown {
  const { metadata, ...rest } = body as KubernetesObject;
  const { uid: _uid, creationTimestamp: _time, managedFields: _fields, ...kept } = metadata;
  const text = JSON.stringify({ ...rest, metadata: kept })
    .replaceAll(/response\.uid=\\"[-0-9a-f]{36}/gu, 'response.uid=\\"UID')
    .replaceAll(/ on [0-9.]+:53: no such host/gu, ': no such host')
    .replaceAll(/ \(possibly because of .*?candidate authority certificate \\".*?\\"\)/gu, '');
  return JSON.parse(text);
}
