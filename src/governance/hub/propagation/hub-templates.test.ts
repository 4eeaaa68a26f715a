import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLog } from '../../../log/index.ts';
import { ApiError } from '../../../cluster/index.ts';
import {
  isJsonObject,
  type JsonObject,
  keyText,
  kubernetesKind,
  type KubernetesObject,
  type ObjectKey,
  type Policy,
  type ResourceType,
} from '../../../resources/index.ts';
import { EvaluationLanes } from '../../evaluation/evaluation-lanes.ts';
import { KindMappings } from '../../objects/kind-mappings.ts';
import { MissingKinds } from '../../objects/missing-kinds.ts';
import type { KindObjects, ReadSelection } from '../../objects/watched-kinds.ts';
import { hubTemplateErrorOf } from '../../evaluation/hub-templates-evaluation.ts';
import { HubTemplates, type Postponed, type ResolvedCopy } from './hub-templates.ts';
import { until } from '../../testing/until.ts';
import { policyCopy } from '../../targets/policy-copy.ts';

const GROUP = 'policy.open-cluster-management.io';
const MANAGED_CLUSTERS: ResourceType = {
  group: 'cluster.open-cluster-management.io',
  version: 'v1',
  resource: 'managedclusters',
  kind: 'ManagedCluster',
  namespaced: false,
};

const object = (apiVersion: string, kind: string, metadata: object, rest: object = {}): KubernetesObject => ({
  apiVersion,
  kind,
  metadata: { ...metadata },
  ...rest,
});
const configMap = (namespace: string, name: string, data: JsonObject): KubernetesObject =>
  object('v1', 'ConfigMap', { namespace, name, labels: { team: namespace } }, { data });

const OBJECTS = [
  configMap('policies', 'settings', { port: '8080', name: '{{ "a" }} {{hub "b" hub}} {' }),
  configMap('other', 'settings', { port: 'stolen' }),
  object('v1', 'Secret', { namespace: 'policies', name: 'login' }, { data: { key: 'aHVudGVyMg==' } }),
  object('v1', 'Node', { name: 'node-1' }),
  object('v1', 'Namespace', { name: 'other' }),
  object('cluster.open-cluster-management.io/v1', 'ManagedCluster', { name: 'east', labels: { zone: 'z1' } }),
];

const stop = new AbortController();
const evaluations = new EvaluationLanes(createLog({ level: 'silent' }), { ordinaryMs: 300, slowMs: 20_000 });
const running = evaluations.start(stop.signal);
after(async () => {
  stop.abort();
  await running;
});

const EAST = { name: 'east', namespace: 'east' };

/** The hub templates of a cluster `east`, and what a root follows. */
class Hub {
  readonly used = new Map<string, readonly ReadSelection[]>();
  readonly woken: string[] = [];
  readonly #templates: HubTemplates;

  constructor(objects: readonly KubernetesObject[] = OBJECTS, unreadable: readonly string[] = []) {
    const discovery = {
      find: async (apiVersion: string, kind: string) =>
        apiVersion === 'cluster.open-cluster-management.io/v1' && objects.some((one) => one.kind === 'ManagedCluster')
          ? MANAGED_CLUSTERS
          : kubernetesKind(apiVersion, kind),
    };
    const open = async ({ kind }: ResourceType): Promise<KindObjects> => {
      if (unreadable.includes(kind)) {
        throw new ApiError(403, 'Forbidden', `${kind} is forbidden`);
      }
      const known = objects.filter((one) => one.kind === kind);
      return {
        get: ({ namespace, name }) =>
          known.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
        list: (namespace) =>
          known.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace),
      };
    };
    this.#templates = new HubTemplates({
      mappings: new KindMappings(discovery as ConstructorParameters<typeof KindMappings>[0], { list: () => [] }),
      reader: {
        open,
        use: (key: ObjectKey, selections) => void this.used.set(keyText(key), selections),
        add: (key: ObjectKey, selection) =>
          void this.used.set(keyText(key), [...(this.used.get(keyText(key)) ?? []), selection]),
      },
      missing: new MissingKinds(),
      evaluations,
      wake: (key: ObjectKey) => this.woken.push(keyText(key)),
    });
  }

  /** Tries again while it is postponed: on a busy machine a thread may have no time for it. */
  async resolve(root: Policy): Promise<ResolvedCopy> {
    let resolved = await this.attempt(root);
    while (!('copy' in resolved)) {
      await sleep(20);
      resolved = await this.attempt(root);
    }
    return resolved;
  }

  async attempt(root: Policy): Promise<ResolvedCopy | Postponed> {
    const copy = policyCopy(root, `policies.${root.metadata.name ?? ''}`, EAST, root.spec);
    return await this.#templates.resolve(root, copy, EAST, new AbortController().signal);
  }

  /** The value of a field of a ConfigurationPolicy, or its error. */
  async value(template: string, spec: Partial<Policy['spec']> = {}): Promise<unknown> {
    const { copy, errors } = await this.resolve(root([configuration({ value: template })], {}, spec));
    const [definition = {}] = definitions(copy);
    assert.equal(errors[0], hubTemplateErrorOf(definition));
    return errors[0] === undefined ? isJsonObject(definition['spec']) && definition['spec']['value'] : errors[0];
  }
}

const configuration = (spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'ConfigurationPolicy',
  metadata: { name: 'config', ...metadata },
  spec,
});

function root(
  objectDefinitions: readonly JsonObject[],
  metadata: Policy['metadata'] = {},
  spec: Partial<Policy['spec']> = {},
): Policy {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name: 'web', namespace: 'policies', labels: { team: 'web' }, ...metadata },
    spec: {
      disabled: false,
      'policy-templates': objectDefinitions.map((objectDefinition) => ({ objectDefinition })),
      ...spec,
    },
  };
}

function definitions({ spec }: Policy): readonly JsonObject[] {
  return spec['policy-templates'].map(({ objectDefinition }) => objectDefinition);
}

describe('the templates of the hub in a Policy', () => {
  const values: readonly (readonly [template: string, value: unknown])[] = [
    ['{{hub .ManagedClusterName hub}}', 'east'],
    ['{{hub .ManagedClusterLabels.zone hub}}', 'z1'],
    ['{{hub .PolicyMetadata.namespace hub}}/{{hub .PolicyMetadata.name hub}}', 'policies/web'],
    ['{{hub .PolicyMetadata.labels.team hub}}', 'web'],
    ['{{hub fromConfigMap "" "settings" "port" hub}}', '8080'],
    ['{{hub fromConfigMap "policies" "settings" "port" | toInt hub}}', 8080],
    ['{{hub len (lookup "v1" "ConfigMap" "" "").items hub}}', '1'],
    ['{{hub (lookup "cluster.open-cluster-management.io/v1" "ManagedCluster" "" "east").metadata.name hub}}', 'east'],
    ['{{hub now | date "05" hub}}', '00'],
  ];
  for (const [template, value] of values) {
    it(`resolve ${template}`, async () => assert.deepEqual(await new Hub().value(template), value));
  }

  const refused: readonly (readonly [template: string, error: RegExp])[] = [
    ['{{hub fromConfigMap "other" "settings" "port" hub}}', /spec\.value: .*restricted to namespace policies/],
    ['{{hub copyConfigMapData "other" "settings" hub}}', /restricted to namespace policies/],
    ['{{hub (index (lookup "v1" "ConfigMap" "other" "").items 0).data.port hub}}', /restricted to namespace policies/],
    ['{{hub fromConfigMap (printf "%s" "other") "settings" "port" hub}}', /restricted to namespace policies/],
    ['{{hub (lookup "v1" "Node" "" "node-1").metadata.name hub}}', /read no cluster-scoped objects/],
    ['{{hub (lookup "v1" "Node" "policies" "node-1").metadata.name hub}}', /read no cluster-scoped objects/],
    ['{{hub (lookup "v1" "Namespace" "policies" "").items hub}}', /read no cluster-scoped objects/],
    ['{{hub getNodesWithExactRoles "infra" hub}}', /read no cluster-scoped objects/],
    [
      '{{hub (lookup "cluster.open-cluster-management.io/v1" "ManagedCluster" "" "").items hub}}',
      /read no cluster-scoped objects/,
    ],
    ['{{hub lookup "b.example/v1" "ManagedCluster" "other" "east" hub}}', /restricted to namespace policies/],
    ['{{hub fromSecret "policies" "login" "key" hub}}', /Secrets are not available to hub templates/],
    ['{{hub (lookup "v1" "Secret" "policies" "login").data.key hub}}', /Secrets are not available/],
    ['{{hub copySecretData "" "login" hub}}', /Secrets are not available/],
    ['{{hub protect "x" hub}}', /the function protect of Open Cluster Management is not supported/],
    ['{{hub fromConfigMap "" "none" "k" hub}}', /there is no ConfigMap policies\/none|there is no ConfigMap none/],
    ['{{hub fail "no" hub}}', /no/],
    ['{{hub range (until 10000) hub}}{{hub range (until 10000) hub}}{{hub end hub}}{{hub end hub}}', /steps/],
  ];
  for (const [template, error] of refused) {
    it(`refuse ${template}`, async () => {
      const value = String(await new Hub().value(template));
      assert.match(value, error);
      assert.doesNotMatch(value, /stolen|aHVudGVyMg/);
    });
  }

  it('have values that are no templates, neither of the hub nor of the cluster', async () => {
    const value = await new Hub().value('{{hub fromConfigMap "" "settings" "name" hub}}');
    assert.equal(value, '{{ "{" }}{{ "{" }} "a" }} {{ "{" }}{{ "{" }}hub "b" hub}} {{ "{" }}');
  });

  it('have empty labels of a cluster without a ManagedCluster', async () => {
    const value = await new Hub(OBJECTS.slice(0, 1)).value('{{hub len .ManagedClusterLabels hub}}');
    assert.equal(value, '0');
  });

  it('are errors while objects cannot be read, and read again', async () => {
    const hub = new Hub(OBJECTS, ['ConfigMap', 'ManagedCluster']);
    const policy = root([configuration({ a: '{{hub fromConfigMap "" "settings" "port" hub}}' })]);
    const { errors, retryAfterMs } = await hub.resolve(policy);
    assert.match(errors[0] ?? '', /cannot read ConfigMap policies\/settings: ConfigMap is forbidden/);
    assert.ok(retryAfterMs !== undefined && retryAfterMs > 0);
    assert.match(
      String(await hub.value('{{hub .ManagedClusterLabels.zone hub}}')),
      /cannot read ManagedCluster east: ManagedCluster is forbidden/,
    );
  });

  it('do not act as a service account', async () => {
    const hubTemplateOptions = { serviceAccountName: 'admin' };
    const error = await new Hub().value('{{hub .ManagedClusterName hub}}', { hubTemplateOptions });
    assert.match(String(error), /serviceAccountName is not supported/);
  });

  it('follow what they look up, until the Policy has none', async () => {
    const hub = new Hub();
    await hub.resolve(root([configuration({ a: '{{hub fromConfigMap "" "settings" "port" hub}}' })]));
    const followed = hub.used.get('east/policies.web') ?? [];
    assert.deepEqual(
      followed.map(({ type, namespace, name }) => [type.kind, namespace, name]),
      [['ConfigMap', 'policies', 'settings']],
    );
    await hub.resolve(root([configuration({ a: '{{ .ObjectName }}' })]));
    assert.deepEqual(hub.used.get('east/policies.web'), []);
  });

  it('fail one by one: the others are resolved', async () => {
    const definition = (a: string, name: string): JsonObject => configuration({ a }, { name, annotations: { x: 'y' } });
    const { copy, errors } = await new Hub().resolve(
      root([definition('{{hub fail "no" hub}}', 'first'), definition('{{hub .ManagedClusterName hub}}', 'second')]),
    );
    assert.equal(errors.length, 1);
    const [first = {}, second = {}] = definitions(copy);
    assert.deepEqual(first['metadata'], {
      name: 'first',
      annotations: { x: 'y', [`${GROUP}/hub-templates-error`]: errors[0] },
    });
    assert.deepEqual(second['spec'], { a: 'east' });
    assert.equal(hubTemplateErrorOf(second), undefined);
  });

  it('are together no longer than an object', async () => {
    const long = '{{hub repeat 400000 "x" hub}}';
    const { copy, errors } = await new Hub().resolve(
      root(['a', 'b', 'c'].map((name) => configuration({ long }, { name }))),
    );
    assert.deepEqual(errors, ['the resolved templates of the Policy are longer than 1000000 characters']);
    assert.ok(JSON.stringify(copy).length < 1_500_000);
  });

  it('are for kinds that are templates on the cluster', async () => {
    const pod = { apiVersion: 'constraints.gatekeeper.sh/v1beta1', kind: 'X', metadata: { name: '{{hub "a" hub}}' } };
    const { errors } = await new Hub().resolve(root([pod]));
    assert.deepEqual(errors, [`Templates are restricted to the kinds of ${GROUP}`]);
  });

  it('stay as they are where templates are disabled', async () => {
    const policy = root([configuration({ a: '{{hub "a" hub}}' })], {
      annotations: { [`${GROUP}/disable-templates`]: 'true' },
    });
    const { copy, errors } = await new Hub().resolve(policy);
    assert.deepEqual([definitions(copy), errors], [definitions(policy), []]);
  });

  it('that are slow are resolved later; those of other Policies are not', async () => {
    const hub = new Hub();
    // Each takes a part of the time that all may take together.
    const text = '{{hub range (until 9000) hub}}{{hub repeat 100 "x" hub}}{{hub end hub}}';
    const templates = Array.from({ length: 200 }, (_, index) => configuration({ text }, { name: `t${index}` }));
    const slow = root(templates, { generation: 1 });
    assert.deepEqual(await hub.attempt(slow), { waitMs: undefined });
    const template = configuration({ a: '{{hub .ManagedClusterName hub}}' });
    assert.deepEqual((await hub.resolve(root([template], { name: 'other', generation: 1 }))).errors, []);
    await until(() => hub.woken.includes('east/policies.web'));
    assert.ok('copy' in (await hub.attempt(slow)));
  });

  it('that an author only claims to be wrong are no error', () => {
    const annotations = { [`${GROUP}/hub-templates-error`]: 'made up' };
    assert.equal(hubTemplateErrorOf(configuration({}, { annotations })), undefined);
  });
});
