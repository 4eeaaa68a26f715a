import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MutableObject } from '../kubernetes-object.ts';
import { kubernetesSchema } from '../kubernetes/component-schemas.ts';
import { applyBuiltinDefaults } from './apply-defaults.ts';

/** The object with defaults. test/e2e/builtin-kinds.full.test.ts compares them with those of a real API server. */
function stored(object: MutableObject): MutableObject {
  const schema = kubernetesSchema(object.apiVersion, object.kind);
  assert.ok(schema !== undefined);
  applyBuiltinDefaults(object, schema);
  return object;
}

function pod(spec: object): MutableObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec };
}

const specOf = (object: MutableObject): Record<string, unknown> => object['spec'] as Record<string, unknown>;

describe('defaults of kinds of Kubernetes', () => {
  it('fill in a pod', () => {
    const spec = specOf(
      stored(pod({ containers: [{ name: 'main', image: 'nginx', ports: [{ containerPort: 80 }] }] })),
    );
    assert.deepEqual(spec['containers'], [
      {
        name: 'main',
        image: 'nginx',
        imagePullPolicy: 'Always',
        ports: [{ containerPort: 80, protocol: 'TCP' }],
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
    ]);
    assert.equal(spec['restartPolicy'], 'Always');
  });

  it('set the QoS class of a pod', () => {
    const qosOf = (resources: object): unknown => {
      const { status } = stored(pod({ containers: [{ name: 'main', image: 'a', resources }] }));
      return (status as { qosClass: string }).qosClass;
    };
    assert.deepEqual(
      [
        {},
        { requests: { cpu: '1' } },
        { limits: { cpu: '1', memory: '1Gi' } },
        { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1000m' } },
        { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } },
      ].map(qosOf),
      ['BestEffort', 'Burstable', 'Guaranteed', 'Guaranteed', 'Burstable'],
    );
  });

  it('remove empty fields, but not those whose presence has a meaning', () => {
    const spec = specOf(
      stored(
        pod({
          containers: [{ name: 'main', image: 'a:1', args: [], stdin: false, env: null }],
          hostNetwork: false,
          nodeSelector: {},
          automountServiceAccountToken: false,
        }),
      ),
    );
    const [container] = spec['containers'] as Record<string, unknown>[];
    assert.deepEqual(
      ['args', 'stdin', 'env'].filter((name) => name in (container ?? {})),
      [],
    );
    assert.equal('hostNetwork' in spec || 'nodeSelector' in spec, false);
    assert.equal(spec['automountServiceAccountToken'], false);
  });

  it('write null where a list must be', () => {
    const role = stored({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'a' } });
    assert.equal(role['rules'], null);
  });

  it('write null where a map has no time', () => {
    const budget = stored({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'a' },
      status: { disruptedPods: { web: null } },
    });
    assert.deepEqual((budget['status'] as Record<string, unknown>)['disruptedPods'], { web: null });
  });

  it('write quantities and times in one form', () => {
    const claim = stored({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'a', creationTimestamp: '2026-01-02T03:04:05+01:00' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1024Mi' } } },
    });
    assert.deepEqual(specOf(claim)['resources'], { requests: { storage: '1Gi' } });
    assert.equal(claim.metadata['creationTimestamp'], '2026-01-02T02:04:05Z');
  });

  it('make data of the texts of a secret', () => {
    const secret = stored({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'a' },
      stringData: { a: 'text' },
      data: { a: 'b2xk', b: 'YQ==' },
    });
    assert.deepEqual(secret['data'], { a: 'dGV4dA==', b: 'YQ==' });
    assert.equal('stringData' in secret, false);
  });

  it('make the selector of a job of its unique id once', () => {
    const job = stored({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'a', uid: 'u' },
      spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'a:1' }] } } },
    });
    assert.deepEqual(specOf(job)['selector'], { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u' } });
    const changed = stored({ ...job, metadata: { name: 'a', uid: 'u', resourceVersion: '5' }, spec: { template: {} } });
    assert.equal(specOf(changed)['selector'], undefined);
  });

  it('do not give a namespace its finalizer back while it is deleted', () => {
    const namespace = (metadata: object): MutableObject =>
      stored({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a', ...metadata }, spec: {} });
    assert.deepEqual(specOf(namespace({}))['finalizers'], ['kubernetes']);
    assert.deepEqual(specOf(namespace({ deletionTimestamp: '2026-01-02T03:04:05Z' })), {});
  });

  it('take __proto__ for a key like any other', () => {
    const data = JSON.parse('{"__proto__": "a", "constructor": "b"}') as object;
    const map = stored({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data });
    assert.deepEqual(Object.keys(map['data'] as object), ['__proto__', 'constructor']);
  });

  it('read schemas of custom resources however deep they are', () => {
    let schema: Record<string, unknown> = { type: 'string' };
    for (let depth = 0; depth < 50_000; depth += 1) {
      schema = { properties: { a: schema } };
    }
    const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } };
    const definition = stored({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'as.example.com' },
      spec: { group: 'example.com', scope: 'Cluster', names: { kind: 'A', plural: 'as' }, versions: [version] },
    });
    assert.deepEqual((definition['status'] as { storedVersions: unknown }).storedVersions, ['v1']);
  });
});
