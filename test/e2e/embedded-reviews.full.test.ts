// Compares the AdmissionReviews that an embedded cluster and a real kube-apiserver send for the same writes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { UserInfo } from '../../src/apiserver/embedded/request/request.ts';
import { WebhookRecorder } from '../../src/apiserver/embedded/testing/webhook-recorder.ts';
import type { Behaviour, Recorded, Review } from '../../src/apiserver/embedded/testing/webhook-recorder.ts';
import { EmbeddedCluster } from '../../src/apiserver/index.ts';
import { ApiError, KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import type { Cluster as ClusterPort } from '../../src/cluster/index.ts';
import type { JsonObject, KubernetesObject, ResourceType } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const ADMIN: UserInfo = { username: 'admin', uid: 'admin', groups: ['system:masters', 'system:authenticated'] };
const NAMESPACE = 'hooked';
const MANAGER = { fieldManager: 'tester' } as const;

const type = (group: string, version: string, kind: string, resource: string, namespaced = true): ResourceType => ({
  group,
  version,
  kind,
  resource,
  namespaced,
});

const CONFIG_MAPS = type('', 'v1', 'ConfigMap', 'configmaps');
const PODS = type('', 'v1', 'Pod', 'pods');
const NAMESPACES = type('', 'v1', 'Namespace', 'namespaces', false);
const ACCOUNTS = type('', 'v1', 'ServiceAccount', 'serviceaccounts');
const DEPLOYMENTS = type('apps', 'v1', 'Deployment', 'deployments');
const LEASES = type('coordination.k8s.io', 'v1', 'Lease', 'leases');
const CLUSTER_ROLES = type('rbac.authorization.k8s.io', 'v1', 'ClusterRole', 'clusterroles', false);
const CRDS = type('apiextensions.k8s.io', 'v1', 'CustomResourceDefinition', 'customresourcedefinitions', false);
const WIDGETS = type('example.com', 'v1', 'Widget', 'widgets');
const OLD_WIDGETS = type('example.com', 'v1beta1', 'Widget', 'widgets');
const VALIDATING = type(
  'admissionregistration.k8s.io',
  'v1',
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
  false,
);
const MUTATING = type(
  'admissionregistration.k8s.io',
  'v1',
  'MutatingWebhookConfiguration',
  'mutatingwebhookconfigurations',
  false,
);

const GROUPS = ['', 'apps', 'coordination.k8s.io', 'rbac.authorization.k8s.io', 'example.com', 'authorization.k8s.io'];

function object(of: ResourceType, name: string, rest: object = {}, metadata: object = {}): KubernetesObject {
  return {
    apiVersion: of.group === '' ? of.version : `${of.group}/${of.version}`,
    kind: of.kind,
    metadata: { name, ...(of.namespaced ? { namespace: NAMESPACE } : {}), ...metadata },
    ...rest,
  };
}

const key = (name: string): { namespace: string; name: string } => ({ namespace: NAMESPACE, name });

const version = (name: string, isStored: boolean): object => ({
  name,
  served: true,
  storage: isStored,
  schema: {
    openAPIV3Schema: {
      type: 'object',
      properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    },
  },
  subresources: { status: {} },
});

const CRD = object(CRDS, 'widgets.example.com', {
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [version('v1', true), version('v1beta1', false)],
  },
});

const pod = (name: string): KubernetesObject =>
  object(PODS, name, { spec: { containers: [{ name: 'main', image: 'example.com/x:1' }] } });

const deployment = object(DEPLOYMENTS, 'web', {
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'example.com/x:1' }] } },
  },
});

/** Writes by name, in order. */
const WRITES: readonly (readonly [name: string, write: (cluster: ClusterPort) => Promise<unknown>])[] = [
  ['create', (cluster) => cluster.create(CONFIG_MAPS, object(CONFIG_MAPS, 'a', { data: { x: '1' } }), MANAGER)],
  [
    'create dry run',
    (cluster) => cluster.create(CONFIG_MAPS, object(CONFIG_MAPS, 'dry'), { ...MANAGER, dryRun: true }),
  ],
  [
    'create with a generated name',
    (cluster) => {
      const { name: _name, ...metadata } = object(CONFIG_MAPS, '').metadata;
      return cluster.create(
        CONFIG_MAPS,
        { ...object(CONFIG_MAPS, ''), metadata: { ...metadata, generateName: 'gen-' } },
        MANAGER,
      );
    },
  ],
  ['update', (cluster) => cluster.update(CONFIG_MAPS, object(CONFIG_MAPS, 'a', { data: { x: '2' } }), MANAGER)],
  [
    'merge patch',
    (cluster) => cluster.patch(CONFIG_MAPS, key('a'), { type: 'merge', body: { data: { y: '3' } } }, MANAGER),
  ],
  [
    'JSON patch',
    (cluster) =>
      cluster.patch(CONFIG_MAPS, key('a'), { type: 'json', body: [{ op: 'remove', path: '/data/y' }] }, MANAGER),
  ],
  [
    'strategic merge patch',
    (cluster) => cluster.patch(CONFIG_MAPS, key('a'), { type: 'strategic', body: { data: { z: '4' } } }, MANAGER),
  ],
  [
    'apply of a new object',
    (cluster) =>
      cluster.patch(
        CONFIG_MAPS,
        key('b'),
        { type: 'apply', body: object(CONFIG_MAPS, 'b', { data: { a: '1' } }) as JsonObject },
        MANAGER,
      ),
  ],
  [
    'apply by force',
    (cluster) =>
      cluster.patch(
        CONFIG_MAPS,
        key('b'),
        { type: 'apply', force: true, body: object(CONFIG_MAPS, 'b', { data: { a: '2' } }) as JsonObject },
        { fieldManager: 'other' },
      ),
  ],
  ['delete', (cluster) => cluster.delete(CONFIG_MAPS, key('b'), { propagationPolicy: 'Background' })],
  [
    'delete with options',
    (cluster) =>
      cluster.delete(CONFIG_MAPS, key('a'), { propagationPolicy: 'Background', gracePeriodSeconds: 0, dryRun: true }),
  ],
  ['a pod', (cluster) => cluster.create(PODS, pod('p'), MANAGER)],
  [
    'the status of a pod',
    (cluster) =>
      cluster.patch(
        PODS,
        key('p'),
        { type: 'merge', body: { status: { phase: 'Running' } } },
        { ...MANAGER, subresource: 'status' },
      ),
  ],
  [
    'a pod is deleted',
    (cluster) => cluster.delete(PODS, key('p'), { gracePeriodSeconds: 0, propagationPolicy: 'Background' }),
  ],
  ['a deployment', (cluster) => cluster.create(DEPLOYMENTS, deployment, MANAGER)],
  [
    'its scale',
    (cluster) =>
      cluster.patch(
        DEPLOYMENTS,
        key('web'),
        { type: 'merge', body: { spec: { replicas: 2 } } },
        { ...MANAGER, subresource: 'scale' },
      ),
  ],
  [
    'its status',
    (cluster) =>
      cluster.patch(
        DEPLOYMENTS,
        key('web'),
        { type: 'merge', body: { status: { replicas: 1 } } },
        { ...MANAGER, subresource: 'status' },
      ),
  ],
  ['a lease', (cluster) => cluster.create(LEASES, object(LEASES, 'l', { spec: { holderIdentity: 'me' } }), MANAGER)],
  [
    'a cluster role',
    (cluster) =>
      cluster.create(
        CLUSTER_ROLES,
        object(CLUSTER_ROLES, 'cr', { rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] }),
        MANAGER,
      ),
  ],
  ['a service account', (cluster) => cluster.create(ACCOUNTS, object(ACCOUNTS, 'robot'), MANAGER)],
  [
    'a token',
    (cluster) =>
      cluster.create(
        ACCOUNTS,
        {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          metadata: key('robot'),
          spec: { audiences: ['a'], expirationSeconds: 600 },
        },
        { ...MANAGER, subresource: 'token' },
      ),
  ],
  [
    'a review',
    (cluster) =>
      cluster.create(
        type('authorization.k8s.io', 'v1', 'SelfSubjectAccessReview', 'selfsubjectaccessreviews', false),
        {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          metadata: {},
          spec: { resourceAttributes: { verb: 'get', resource: 'pods' } },
        },
        MANAGER,
      ),
  ],
  ['a custom resource', (cluster) => cluster.create(WIDGETS, object(WIDGETS, 'w', { spec: { size: 1 } }), MANAGER)],
  [
    'a custom resource in another version',
    (cluster) => cluster.create(OLD_WIDGETS, object(OLD_WIDGETS, 'v', { spec: { size: 1 } }), MANAGER),
  ],
  [
    'the status of a custom resource',
    (cluster) =>
      cluster.patch(WIDGETS, key('w'), { type: 'merge', body: { status: {} } }, { ...MANAGER, subresource: 'status' }),
  ],
  [
    'a namespace',
    (cluster) => cluster.create(NAMESPACES, object(NAMESPACES, 'fresh', {}, { labels: { a: 'b' } }), MANAGER),
  ],
  [
    'a namespace is changed',
    (cluster) =>
      cluster.patch(
        NAMESPACES,
        { name: 'fresh' },
        { type: 'merge', body: { metadata: { labels: { a: 'c' } } } },
        MANAGER,
      ),
  ],
  [
    'a namespace is deleted',
    (cluster) => cluster.delete(NAMESPACES, { name: 'fresh' }, { propagationPolicy: 'Background' }),
  ],
  [
    'a webhook configuration is changed',
    (cluster) =>
      cluster.patch(
        VALIDATING,
        { name: 'all' },
        { type: 'merge', body: { metadata: { labels: { a: 'b' } } } },
        MANAGER,
      ),
  ],
  [
    'a collection is deleted',
    (cluster) => cluster.deleteCollection(CONFIG_MAPS, { namespace: NAMESPACE, labelSelector: 'app=none' }),
  ],
];

const set = (path: string, value: unknown): object => ({ op: 'add', path, value });

/** Patches of the first webhook, by the label of the object. */
const ODD_PATCHES: Readonly<Record<string, readonly object[]>> = {
  'unknown-field': [set('/nonsense', 1), set('/data', { a: '1' })],
  'wrong-type': [set('/data', { a: 1 })],
  'wrong-list': [set('/data', [])],
  'no-metadata': [{ op: 'remove', path: '/metadata' }],
  'other-name': [set('/metadata/name', 'renamed')],
  'other-namespace': [set('/metadata/namespace', 'default')],
  'other-kind': [set('/kind', 'Secret')],
  'other-version': [set('/apiVersion', 'v2')],
  'bad-label': [set('/metadata/labels/a', 'not a label!')],
  finalizer: [set('/metadata/finalizers', ['example.com/x'])],
  owner: [set('/metadata/ownerReferences', [{ apiVersion: 'v1', kind: 'Pod', name: 'p' }])],
  whole: [{ op: 'replace', path: '', value: object(CONFIG_MAPS, 'whole', { data: { b: '2' } }) }],
  uid: [set('/metadata/uid', 'mine')],
};

/** A mutating webhook that changes ConfigMaps with its label. Webhooks are called in the order of their names. */
const mark: Behaviour = ({ request }) => {
  const { metadata, data } = (request.object ?? {}) as KubernetesObject;
  const odd = ODD_PATCHES[metadata?.labels?.odd ?? ''];
  if (odd !== undefined) {
    const patch = Buffer.from(JSON.stringify(odd)).toString('base64');
    return { response: { allowed: true, patchType: 'JSONPatch', patch } };
  }
  const { marks = '' } = (data ?? {}) as { marks?: string };
  if (metadata?.labels?.mark !== 'yes' || marks.length >= 3) {
    return { response: { allowed: true } };
  }
  const operations = [{ op: 'add', path: '/data', value: { marks: `${marks}m` } }];
  const patch = Buffer.from(JSON.stringify(operations)).toString('base64');
  return { response: { allowed: true, patchType: 'JSONPatch', patch } };
};

interface Target {
  readonly port: ClusterPort;
  readonly recorder: WebhookRecorder;
}

describe('reviews that webhooks get', { skip: skipWithoutCluster(), timeout: 120_000 }, () => {
  let server: Cluster;
  let client: KubernetesCluster;
  let embedded: EmbeddedCluster;
  let real: Target;
  let own: Target;

  before(async () => {
    server = await startCluster();
    client = new KubernetesCluster({
      server: server.url,
      ca: readFileSync(server.caFile, 'utf8'),
      credentials: tokenCredentials(server.adminToken),
    });
    embedded = await EmbeddedCluster.open();
    real = { port: client, recorder: await WebhookRecorder.start({ mark }) };
    own = { port: embedded.as(ADMIN), recorder: await WebhookRecorder.start({ mark }) };
    await Promise.all([real, own].map(prepare));
  });
  after(async () => {
    await Promise.all([real, own].map(({ recorder }) => recorder[Symbol.asyncDispose]()));
    await embedded.close();
    client.close();
    await server.stop();
  });

  async function prepare({ port, recorder }: Target): Promise<void> {
    await port.create(NAMESPACES, object(NAMESPACES, NAMESPACE), MANAGER);
    await port.create(CRDS, CRD, MANAGER);
    await eventually(async () => {
      await port.list(WIDGETS, { namespace: NAMESPACE });
      await port.list(OLD_WIDGETS, { namespace: NAMESPACE });
    });
    const hook = (of: ResourceType, name: string, path: string, rest: object = {}): KubernetesObject =>
      object(of, name, {
        webhooks: [
          {
            name: `${name}.example.com`,
            admissionReviewVersions: ['v1'],
            sideEffects: 'None',
            rules: [{ operations: ['*'], apiGroups: GROUPS, apiVersions: ['v1'], resources: ['*/*'] }],
            clientConfig: {
              url: recorder.url(path),
              caBundle: Buffer.from(recorder.certificate.cert).toString('base64'),
            },
            ...rest,
          },
        ],
      });
    await port.create(MUTATING, hook(MUTATING, 'a', 'mark/a', { reinvocationPolicy: 'IfNeeded' }), MANAGER);
    await port.create(MUTATING, hook(MUTATING, 'b', 'mark/b'), MANAGER);
    await port.create(MUTATING, hook(MUTATING, 'c', 'seen/c', { reinvocationPolicy: 'IfNeeded' }), MANAGER);
    await port.create(VALIDATING, hook(VALIDATING, 'all', 'validate'), MANAGER);
    await eventually(async () => {
      recorder.recorded.length = 0;
      await port.create(CONFIG_MAPS, object(CONFIG_MAPS, 'probe'), { dryRun: true });
      assert.deepEqual(
        new Set(recorder.recorded.map(({ path }) => path)),
        new Set(['/mark/a', '/mark/b', '/seen/c', '/validate']),
      );
    });
  }

  async function reviewsOf(
    { port, recorder }: Target,
    write: (cluster: ClusterPort) => Promise<unknown>,
  ): Promise<unknown> {
    recorder.recorded.length = 0;
    let refusal: unknown;
    try {
      await write(port);
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      refusal = error.message;
    }
    return {
      refusal,
      reviews: byUser(recorder).map(({ path, review }) => ({ path, ...normal(withoutDefaults(review)) })),
    };
  }

  it('are the same', async (t) => {
    for (const [name, write] of WRITES) {
      await t.test(name, async () => {
        const [expected, actual] = await Promise.all([reviewsOf(real, write), reviewsOf(own, write)]);
        assert.deepEqual(actual, expected);
      });
    }
  });

  it('may be answered with patches of all kinds', async (t) => {
    const attempt = async ({ port }: Target, name: string): Promise<unknown> => {
      try {
        const made = object(CONFIG_MAPS, name, {}, { labels: { odd: name } });
        return normal(await port.create(CONFIG_MAPS, made, { ...MANAGER, dryRun: true }));
      } catch (error) {
        assert.ok(error instanceof ApiError, String(error));
        return error.toStatus();
      }
    };
    for (const name of Object.keys(ODD_PATCHES)) {
      await t.test(name, async () => {
        const [expected, actual] = await Promise.all([attempt(real, name), attempt(own, name)]);
        // The message of API servers contains the name of a source file.
        const shown = name === 'other-version' ? [actual, expected].map(codeOf) : [actual, expected];
        assert.deepEqual(shown[0], shown[1]);
      });
    }
  });

  it('come in the same order, again where a later webhook has changed the object', async () => {
    const marked = object(CONFIG_MAPS, 'marked', {}, { labels: { mark: 'yes' } });
    const write = (cluster: ClusterPort): Promise<KubernetesObject> => cluster.create(CONFIG_MAPS, marked, MANAGER);
    const [expected, actual] = await Promise.all([reviewsOf(real, write), reviewsOf(own, write)]);
    assert.deepEqual(actual, expected);
    assert.deepEqual(
      byUser(own.recorder).map(({ path }) => path),
      ['/mark/a', '/mark/b', '/seen/c', '/mark/a', '/seen/c', '/validate'],
    );
  });
});

/**
 * The reviews of writes by the test, without those by controllers. For a graceful deletion of a pod, API servers call webhooks
 * again, when it has its deletion timestamp and after conflicts. Embedded clusters call them once.
 */
function byUser({ recorded }: WebhookRecorder): readonly Recorded[] {
  const deleted = new Set<string>();
  return recorded.filter(({ path, review: { request } }) => {
    const isDeletedPod = request.operation === 'DELETE' && (request.oldObject as KubernetesObject).kind === 'Pod';
    const isAgain = isDeletedPod && deleted.has(path);
    deleted.add(path);
    return (request.userInfo as UserInfo).username === ADMIN.username && !isAgain;
  });
}

/**
 * Removes fields that the two set at different times. An embedded cluster sets the status of pods and the finalizers of
 * Namespaces before mutating webhooks, API servers after them. API servers complete TokenRequests before validating webhooks,
 * embedded clusters after them.
 */
function withoutDefaults(review: Review): Review {
  const { operation, object: given } = review.request;
  if (operation !== 'CREATE' || given === null) {
    return review;
  }
  const { status: _status, spec, metadata, ...rest } = given as KubernetesObject;
  const { finalizers: _finalizers, boundObjectRef: _reference, ...kept } = (spec ?? {}) as Record<string, unknown>;
  const shown = rest.kind === 'TokenRequest' ? { name: metadata.name, namespace: metadata.namespace } : metadata;
  return { ...review, request: { ...review.request, object: { ...rest, metadata: shown, spec: kept } } };
}

const codeOf = (body: unknown): unknown => (body as { code?: number }).code;

/** Fields that other tests compare. */
const IGNORED = new Set(['managedFields']);

/** Fields with generated values and times, by name. */
const GENERATED = new Set([
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
  'time',
  'token',
  'expirationTimestamp',
]);

function normal(review: object): object {
  const text = JSON.stringify(review, (name, value: unknown) => {
    if (IGNORED.has(name)) {
      return undefined;
    }
    return GENERATED.has(name) && typeof value === 'string' && value !== ADMIN.uid ? `<${name}>` : value;
  });
  return JSON.parse(text.replaceAll(/gen-[a-z0-9]{5}/gu, 'gen-?????')) as object;
}
