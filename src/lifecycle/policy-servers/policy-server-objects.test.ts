import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseSources } from '../../modules/sources/index.ts';
import {
  ANNOTATIONS,
  type JsonObject,
  kubernetesSchema,
  type PolicyServerObject,
  textOf,
} from '../../resources/index.ts';
import { ObjectSchema } from '../../resources/validation/index.ts';
import { policyServerDeployment } from './policy-server-deployment.ts';
import { type PolicyServerObjects, policyServerObjects } from './policy-server-objects.ts';
import { EVERYTHING, policyServer, SETTINGS, VERIFICATION_CONFIG } from './testing/policy-servers.ts';

interface Container {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly image: string;
  readonly securityContext: JsonObject;
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly {
    readonly mountPath: string;
    readonly subPath?: string;
    readonly readOnly?: boolean;
  }[];
  readonly [field: string]: unknown;
}
interface PodSpec {
  readonly containers: readonly [Container];
  readonly volumes: readonly JsonObject[];
  readonly [field: string]: unknown;
}

function objectsOf(spec: Partial<PolicyServerObject['spec']> = {}): PolicyServerObjects {
  return policyServerObjects(policyServer(spec), SETTINGS, []);
}

/** A field of an object by its path. */
function at(object: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce((value, key) => (value as Record<string | number, unknown> | undefined)?.[key], object);
}

function podOf(spec: Partial<PolicyServerObject['spec']> = {}): PodSpec {
  return at(objectsOf(spec).Deployment, 'spec', 'template', 'spec') as PodSpec;
}

function argument(pod: PodSpec, flag: string): string | undefined {
  const found = pod.containers[0].args.find((arg) => arg.startsWith(`--${flag}=`));
  return found?.slice(flag.length + 3);
}

describe('objects of a PolicyServer', () => {
  it('are valid for any spec', () => {
    for (const spec of [{}, EVERYTHING, { moduleCache: { hostPath: { path: '/srv/modules' } } }, { replicas: 0 }]) {
      for (const object of Object.values(objectsOf(spec))) {
        const schema = kubernetesSchema(textOf(object['apiVersion']), textOf(object['kind']));
        assert.ok(schema !== undefined);
        const errors = new ObjectSchema(schema).validate(object as never);
        assert.deepEqual(errors, [], textOf(object['kind']));
      }
    }
  });

  it('replace pods one by one, each before the old one stops', () => {
    const deployment = objectsOf({ replicas: 2 }).Deployment;
    assert.deepEqual(at(deployment, 'spec', 'strategy'), {
      type: 'RollingUpdate',
      rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
    });
    const pod = podOf();
    const delay = Number(argument(pod, 'shutdown-delay'));
    assert.ok(
      delay > 0 && Number(pod['terminationGracePeriodSeconds']) > delay + 30,
      'the longest webhook is answered',
    );
    const { livenessProbe, readinessProbe, startupProbe } = pod.containers[0];
    assert.deepEqual(
      [livenessProbe, readinessProbe, startupProbe].map((probe) => at(probe, 'httpGet', 'path')),
      ['/livez', '/readyz', '/livez'],
    );
  });

  it('run pods under the restricted standard, unless the spec differs', () => {
    const pod = podOf();
    assert.deepEqual(pod['securityContext'], { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    const context = pod.containers[0].securityContext;
    assert.equal(context['readOnlyRootFilesystem'], true);
    assert.deepEqual(context['capabilities'], { drop: ['ALL'] });
    const own = podOf({ securityContexts: { pod: { runAsUser: 7 }, container: { runAsUser: 8 } } });
    assert.deepEqual([own['securityContext'], own.containers[0].securityContext], [{ runAsUser: 7 }, { runAsUser: 8 }]);
  });

  it('write to volumes only', () => {
    const [{ volumeMounts }] = podOf({ insecureSources: ['a'] }).containers;
    const writable = volumeMounts.filter(({ readOnly }) => readOnly !== true).map(({ mountPath }) => mountPath);
    assert.deepEqual(writable, ['/var/lib/portcullis', '/tmp']);
  });

  it('give the process the verification of signatures as files of its own pod', () => {
    const texts = { verificationConfig: VERIFICATION_CONFIG, sigstoreTrustConfig: '{"root":"\\u00e9"}' };
    const { Deployment } = policyServerObjects(policyServer({ annotations: { a: 'b' } }), SETTINGS, [], texts);
    const pod = at(Deployment, 'spec', 'template', 'spec') as PodSpec;
    const folder = '/etc/portcullis/verification';
    assert.ok(pod.containers[0].volumeMounts.some(({ mountPath, readOnly }) => mountPath === folder && readOnly));
    const volume = pod.volumes.find(({ name }) => name === 'verification');
    const files = (at(volume, 'downwardAPI', 'items') as readonly { path: string; fieldRef: JsonObject }[]).map(
      ({ path, fieldRef }) => {
        const annotation = /^metadata\.annotations\['(.*)'\]$/.exec(textOf(fieldRef['fieldPath']))?.[1] ?? '';
        return [`${folder}/${path}`, at(Deployment, 'spec', 'template', 'metadata', 'annotations', annotation)];
      },
    );
    assert.deepEqual(files, [
      [argument(pod, 'verification-path'), texts.verificationConfig],
      [argument(pod, 'sigstore-trust-config'), texts.sigstoreTrustConfig],
    ]);
    const schema = kubernetesSchema('apps/v1', 'Deployment');
    assert.deepEqual(schema && new ObjectSchema(schema).validate(Deployment as never), []);
    const without = podOf();
    assert.ok(!JSON.stringify(without).includes('verification'));
  });

  it('use every field', () => {
    const objects = objectsOf(EVERYTHING);
    const pod = podOf(EVERYTHING);
    const [container] = pod.containers;
    assert.equal(at(objects.Deployment, 'spec', 'replicas'), 3);
    assert.equal(at(objects.PodDisruptionBudget, 'spec', 'minAvailable'), '50%');
    assert.equal(at(objects.Deployment, 'spec', 'template', 'metadata', 'annotations', 'example.com/note'), 'a');
    assert.equal(at(objects.Deployment, 'spec', 'template', 'metadata', 'labels', 'team'), 'security');
    const variables = new Map(container.env.map((variable) => [variable.name, variable]));
    assert.equal(variables.get('KUBEWARDEN_LOG_LEVEL')?.value, 'debug');
    assert.deepEqual(variables.get('TOKEN'), EVERYTHING.env?.[1]);
    assert.deepEqual(at(variables.get('POD_IP'), 'valueFrom', 'fieldRef', 'fieldPath'), 'status.podIP');
    assert.equal(pod['serviceAccountName'], 'policies');
    assert.equal(objects.ServiceAccount, undefined);
    assert.equal(at(objects.RoleBinding, 'subjects', 0, 'name'), 'policies');
    // The controller's Lease is in the same namespace: a pod that takes it would stop every rollout.
    assert.doesNotMatch(JSON.stringify(objects.Role), /leases/);
    assert.equal(at(objects.ClusterRoleBinding, 'subjects', 0, 'name'), 'policies');
    assert.deepEqual(pod['imagePullSecrets'], [{ name: 'registry' }]);
    assert.deepEqual(pod['affinity'], EVERYTHING.affinity);
    assert.equal(pod['topologySpreadConstraints'], undefined);
    assert.deepEqual(container['resources'], { limits: EVERYTHING.limits, requests: EVERYTHING.requests });
    assert.deepEqual(pod['tolerations'], EVERYTHING.tolerations);
    assert.equal(pod['priorityClassName'], 'system-cluster-critical');
    assert.equal(argument(pod, 'namespaced-policies-capabilities'), 'oci/*,net/v1/dns_lookup_host');
    assert.equal(argument(pod, 'port'), '9443');
    assert.equal(argument(pod, 'readiness-probe-port'), '8444');
    assert.equal(argument(pod, 'control-port'), '8445', 'not one that is taken');
    assert.deepEqual(
      container.ports.map(({ containerPort }) => containerPort),
      [9443, 8444, 8445],
    );
    assert.deepEqual(
      (at(objects.Service, 'spec', 'ports') as readonly { port: number }[]).map(({ port }) => port),
      [443, 9090],
    );
  });

  it('give the process the credentials of the pull secret', () => {
    const pod = podOf({ imagePullSecret: 'registry' });
    assert.equal(argument(pod, 'docker-config-json-path'), '/etc/portcullis/docker/config.json');
    const volumes = at(pod, 'volumes') as JsonObject[];
    const items = [{ key: '.dockerconfigjson', path: 'config.json' }];
    assert.deepEqual(
      volumes.find(({ name }) => name === 'docker'),
      { name: 'docker', secret: { secretName: 'registry', items, optional: true } },
    );
    const mounts = at(pod, 'containers', '0', 'volumeMounts') as JsonObject[];
    assert.ok(mounts.some(({ name, mountPath }) => name === 'docker' && mountPath === '/etc/portcullis/docker'));
    assert.equal(argument(podOf(), 'docker-config-json-path'), undefined);
  });

  it('pass module sources to the process, and restart it when they change', () => {
    const text = at(objectsOf(EVERYTHING).ConfigMap, 'data', 'sources.yml');
    const pem = '-----BEGIN CERTIFICATE-----';
    assert.match(String(text), new RegExp(pem));
    const plain = at(objectsOf({ insecureSources: ['registry.example.com:5000'] }).ConfigMap, 'data', 'sources.yml');
    assert.deepEqual(parseSources(String(plain), 'sources.yml').insecureSources, ['registry.example.com:5000']);
    const path = ['spec', 'template', 'metadata', 'annotations', 'portcullis.dev/sources'] as const;
    const [one, other] = ['a', 'b'].map((host) => at(objectsOf({ insecureSources: [host] }).Deployment, ...path));
    assert.notEqual(one, other);
    assert.equal(argument(podOf({ insecureSources: ['a'] }), 'sources-path'), '/etc/portcullis/sources/sources.yml');
    const mirrors = 'ghcr.io=https://a.example/ghcr.io, docker.io=http://b.example:5000,ghcr.io = https://c.example';
    const annotations = {
      'portcullis.dev/tenant-module-hosts': ' a.example, b.example:8443,',
      'portcullis.dev/registry-mirrors': mirrors,
      'portcullis.dev/tenant-modules': 'builtin, registry://ghcr.io/a',
    };
    const server = policyServer({});
    const named = { ...server, metadata: { ...server.metadata, annotations } };
    const annotated = at(policyServerObjects(named, SETTINGS, []).ConfigMap, 'data', 'sources.yml');
    const sources = parseSources(String(annotated), 'sources.yml');
    assert.deepEqual(sources.tenantHosts, ['a.example', 'b.example:8443']);
    assert.deepEqual(sources.tenantModules, ['registry://ghcr.io/a']);
    const takenOver = { ...server.metadata, annotations: { 'portcullis.dev/take-over': 'true' } };
    const upstream = at(
      policyServerObjects({ ...server, metadata: takenOver }, SETTINGS, []).ConfigMap,
      'data',
      'sources.yml',
    );
    assert.deepEqual(parseSources(String(upstream), 'sources.yml').tenantModules, ['*']);
    assert.deepEqual(
      [...sources.mirrors].map(([host, all]) => [host, all.map(({ shown }) => shown)]),
      [
        ['ghcr.io', ['https://a.example/ghcr.io', 'https://c.example']],
        ['docker.io', ['http://b.example:5000']],
      ],
    );
    assert.equal(objectsOf().ConfigMap, undefined);
    assert.equal(argument(podOf(), 'sources-path'), undefined);
  });

  it('store modules in the volume of the spec', () => {
    const data = (spec: Partial<PolicyServerObject['spec']>): JsonObject | undefined =>
      podOf(spec).volumes.find(({ name }) => name === 'data');
    assert.deepEqual(data({}), { name: 'data', emptyDir: {} });
    assert.deepEqual(data({ moduleCache: { emptyDir: { sizeLimit: '1Gi' } } }), {
      name: 'data',
      emptyDir: { sizeLimit: '1Gi' },
    });
    assert.deepEqual(data({ moduleCache: { hostPath: { path: '/srv/m' } } }), {
      name: 'data',
      hostPath: { path: '/srv/m', type: 'Directory' },
    });
    const claim = podOf({ moduleCache: { persistentVolumeClaim: { claimName: 'm' } } });
    assert.equal(
      claim.containers[0].volumeMounts.find(({ mountPath }) => mountPath === '/var/lib/portcullis')?.subPath,
      'default',
    );
    assert.equal(at(claim['securityContext'], 'fsGroup'), 65_532);
  });

  it('allow namespaced policies the listed capabilities, or none, or all as in Kubewarden where it ran them', () => {
    const flag = (list: readonly string[] | undefined, takeOver: string): string | undefined => {
      const server = policyServer(list === undefined ? {} : { namespacedPoliciesCapabilities: list });
      const annotations = { [ANNOTATIONS.takeOver]: takeOver };
      const { spec } = policyServerDeployment({ ...server, metadata: { ...server.metadata, annotations } }, SETTINGS);
      return argument(at(spec, 'template', 'spec') as PodSpec, 'namespaced-policies-capabilities');
    };
    assert.deepEqual([flag(undefined, ''), flag([], ''), flag(['oci/*'], '')], ['', '', 'oci/*']);
    assert.deepEqual([flag(undefined, 'true'), flag([], 'true'), flag(['oci/*'], 'true')], ['*', '', 'oci/*']);
  });

  it('allow modules of the size that the PolicyServer names', () => {
    const flag = (spec: Partial<PolicyServerObject['spec']>): string | undefined => {
      const deployment = policyServerDeployment(policyServer(spec), SETTINGS);
      return argument(at(deployment.spec, 'template', 'spec') as PodSpec, 'max-module-size');
    };
    assert.deepEqual([flag({}), flag({ maxModuleSize: '128Mi' })], [undefined, '128']);
  });

  it('have no duplicate variables, and none that would prevent the start', () => {
    const env = [
      { name: 'A', value: '1' },
      { name: 'A', value: '2' },
      { name: 'POD_NAME', value: 'x' },
      { name: 'KUBEWARDEN_POLICIES', value: 'x' },
      { name: 'KUBEWARDEN_LOG_FMT', value: 'otlp' },
    ];
    const variables = podOf({ env }).containers[0].env;
    const names = variables.map(({ name }) => name);
    assert.deepEqual(names.toSorted(), [...new Set(names)].toSorted());
    assert.equal(variables.find(({ name }) => name === 'A')?.value, '2');
    assert.equal(variables.find(({ name }) => name === 'POD_NAME')?.value, undefined);
    assert.equal(names.includes('KUBEWARDEN_POLICIES'), false);
    assert.equal(variables.find(({ name }) => name === 'KUBEWARDEN_LOG_FMT')?.value, 'json');
  });

  it('keep our labels on the pods', () => {
    const spec = { labels: { 'app.kubernetes.io/instance': 'x' } };
    const deployment = objectsOf(spec).Deployment;
    const selector = at(deployment, 'spec', 'selector', 'matchLabels') as Record<string, string>;
    const labels = at(deployment, 'spec', 'template', 'metadata', 'labels') as Record<string, string>;
    assert.ok(Object.entries(selector).every(([key, value]) => labels[key] === value));
  });

  it('have a disruption budget if there are several pods, or as the spec says', () => {
    const budget = (spec: Partial<PolicyServerObject['spec']>): unknown => {
      const { minAvailable, maxUnavailable } = (at(objectsOf(spec).PodDisruptionBudget, 'spec') ?? {}) as JsonObject;
      return maxUnavailable === undefined ? minAvailable : ['but', maxUnavailable];
    };
    assert.deepEqual(
      [{ replicas: 1 }, { replicas: 2 }, { replicas: 1, minAvailable: 0 }, { replicas: 5, maxUnavailable: '20%' }].map(
        budget,
      ),
      [undefined, ['but', 1], 0, ['but', '20%']],
    );
  });

  it('spread over nodes and zones, unless the spec has an affinity', () => {
    const constraints = podOf()['topologySpreadConstraints'] as readonly { topologyKey: string }[];
    assert.deepEqual(
      constraints.map(({ topologyKey }) => topologyKey),
      ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'],
    );
    assert.equal(
      podOf({ affinity: {} })['topologySpreadConstraints'] === undefined,
      false,
      'an empty one says nothing',
    );
  });

  it('run Portcullis instead of Kubewarden’s policy server', () => {
    assert.equal(podOf({ image: 'ghcr.io/kubewarden/policy-server:v1' }).containers[0].image, SETTINGS.image);
    assert.equal(podOf({ image: 'example.com/fork:2' }).containers[0].image, 'example.com/fork:2');
  });

  it('let only our pods reach the control port, and only namespaces with a label the metrics', () => {
    const rules = at(objectsOf().NetworkPolicy, 'spec', 'ingress') as readonly JsonObject[];
    const open = rules.filter(({ from }) => from === undefined).flatMap(({ ports }) => ports as readonly JsonObject[]);
    assert.deepEqual(
      open.map(({ port }) => port),
      ['webhook'],
    );
    assert.deepEqual(rules.find(({ ports }) => JSON.stringify(ports).includes('readiness'))?.['from'], [
      { namespaceSelector: { matchLabels: { 'portcullis.dev/metrics': 'true' } } },
    ]);
    assert.equal(
      policyServerObjects(policyServer(), { ...SETTINGS, networkPolicies: false }, []).NetworkPolicy,
      undefined,
    );
  });
});
