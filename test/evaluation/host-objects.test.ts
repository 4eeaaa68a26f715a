// Policies that an evaluation host gives objects of a cluster, without a policy server: an embedded API server behind its gateway.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster, Gateway, writeKubeconfig } from '../../src/apiserver/index.ts';
import { loadKubeconfig, type Cluster, KubernetesCluster } from '../../src/cluster/index.ts';
import { type JsonObject, readPolicyDefinition } from '../../src/engine/index.ts';
import { EvaluationHost } from '../../src/evaluation/index.ts';
import { kubernetesKind, type PolicyMatch, type ResourceType } from '../../src/resources/index.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';

type HostedPolicy = Parameters<EvaluationHost['serve']>[0][number];

const PODS = { group: '', version: 'v1', resource: 'pods' };
const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap' };

const MATCH: PolicyMatch = {
  bucket: 'validating.fail.equivalent.cluster',
  isMutating: false,
  failurePolicy: 'Fail',
  matchPolicy: 'Equivalent',
  rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'], scope: '*' }],
  namespaceSelector: {},
  objectSelector: {},
  matchConditions: [],
  timeoutSeconds: 10,
};

function typeOf(kind: string): ResourceType {
  return kubernetesKind('v1', kind) ?? assert.fail(kind);
}

function policy(id: string, entry: object, match: Partial<PolicyMatch> = {}): HostedPolicy {
  const { definition, faults } = readPolicyDefinition(id, entry);
  assert.ok(definition, JSON.stringify(faults));
  return { id, definition, match: { ...MATCH, ...match } };
}

const cel = (settings: object, rest: object = {}): object => ({ module: 'builtin:cel', settings, ...rest });
const denies = (expression: string, message: string): object => ({ validations: [{ expression, message }] });

const OF_PROD = policy('of-prod', cel(denies('false', 'nothing runs in prod')), {
  namespaceSelector: { matchLabels: { tier: 'prod' } },
});

const AT_MOST = policy(
  'at-most',
  cel(denies('false', 'nobody says how many'), {
    parameters: {
      from: { resource: { ...CONFIG_MAP, name: 'limits' } },
      overridable: ['validations'],
      notFound: 'UseDefaults',
      settingsExpression: `{'validations': [{
        'expression': 'size(object.spec.containers) <= ' + params.data.max,
        'message': 'at most ' + params.data.max + ' containers'
      }]}`,
    },
  }),
);

const KNOWN_TEAM = policy(
  'known-team',
  cel(
    {
      paramKind: CONFIG_MAP,
      paramRef: { name: 'teams', parameterNotFoundAction: 'Deny' },
      ...denies("object.metadata.labels.team in params.data.names.split(',')", 'not a known team'),
    },
    { contextAwareResources: [CONFIG_MAP], hostCapabilities: ['*'] },
  ),
);

/** A cluster whose objects a host reads with a kubeconfig, and the host. */
class World implements AsyncDisposable {
  readonly host: EvaluationHost;
  readonly #admin: Cluster;
  readonly #close: () => Promise<void>;

  private constructor(host: EvaluationHost, admin: Cluster, close: () => Promise<void>) {
    [this.host, this.#admin, this.#close] = [host, admin, close];
  }

  static async open(): Promise<World> {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-host-objects-'));
    const token = 'admin-token';
    const user = { username: 'admin', groups: ['system:masters', 'system:authenticated'] };
    const embedded = await EmbeddedCluster.open({ tokens: [{ token, user }] });
    const tls = await createLoopbackCertificate();
    const gateway = new Gateway({ cluster: embedded, authenticator: embedded.authenticator, tls });
    const { url } = await gateway.start({ port: 0 });
    const file = join(folder, 'kubeconfig');
    await writeKubeconfig(file, { server: url, ca: tls.cert, token });
    const { connection } = await loadKubeconfig({ env: {}, paths: [file] });
    const host = new EvaluationHost({
      cacheDir: join(folder, 'modules'),
      workers: 2,
      cluster: { kind: 'kubeconfig', file, env: {} },
      lookups: { cluster: new KubernetesCluster(connection), log: pino({ level: 'silent' }) },
      log: () => undefined,
    });
    await host.start();
    return new World(host, embedded.admin, async () => {
      await gateway.stop();
      await embedded.close();
      await rm(folder, { recursive: true, force: true });
    });
  }

  async create(kind: string, metadata: object, rest: object = {}): Promise<void> {
    await this.#admin.create(typeOf(kind), { apiVersion: 'v1', kind, metadata, ...rest });
  }

  async patch(kind: string, name: string, body: JsonObject): Promise<void> {
    const type = typeOf(kind);
    await this.#admin.patch(type, type.namespaced ? { namespace: 'shop', name } : { name }, { type: 'merge', body });
  }

  async delete(kind: string, name: string): Promise<void> {
    await this.#admin.delete(typeOf(kind), { namespace: 'shop', name });
  }

  /** What the policy says of a pod: its message, or why it is skipped, or `allowed`. */
  async verdict(policyId: string): Promise<string> {
    const metadata = { name: 'web', namespace: 'shop', labels: { team: 'web' } };
    const object = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: { containers: [{ name: 'main', image: 'web:1' }] },
    };
    const [verdict] = await this.host.evaluate({ object, resource: PODS }, { policies: [policyId] });
    assert.ok(verdict, policyId);
    return verdict.outcome === 'skipped' ? `skipped: ${verdict.reason}` : (verdict.message ?? 'allowed');
  }

  /** Resolves when the policy says this. */
  async says(policyId: string, expected: RegExp): Promise<void> {
    while (!expected.test(await this.verdict(policyId))) {
      await sleep(5);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.host[Symbol.asyncDispose]();
    await this.#close();
  }
}

describe('an evaluation host with a cluster', () => {
  let world: World;
  before(async () => {
    world = await World.open();
    await world.create('Namespace', { name: 'shop', labels: { tier: 'test' } });
    const outcomes = await world.host.serve([OF_PROD, AT_MOST, KNOWN_TEAM]);
    for (const [id, outcome] of outcomes) {
      assert.ok(outcome.ok, `${id}: ${JSON.stringify(outcome)}`);
    }
  });
  after(() => world[Symbol.asyncDispose]());

  it('selects by the labels that the namespace has now', async () => {
    assert.equal(await world.verdict('of-prod'), 'skipped: namespaceSelector');
    await world.patch('Namespace', 'shop', { metadata: { labels: { tier: 'prod' } } });
    await world.says('of-prod', /^nothing runs in prod$/);
    await world.patch('Namespace', 'shop', { metadata: { labels: { tier: 'test' } } });
    await world.says('of-prod', /^skipped: namespaceSelector$/);
  });

  it('gives policies the parameters that exist now', async () => {
    assert.equal(await world.verdict('at-most'), 'nobody says how many');
    await world.create('ConfigMap', { name: 'limits', namespace: 'shop' }, { data: { max: '0' } });
    await world.says('at-most', /^at most 0 containers$/);
    await world.patch('ConfigMap', 'limits', { data: { max: '2' } });
    await world.says('at-most', /^allowed$/);
    await world.delete('ConfigMap', 'limits');
    await world.says('at-most', /^nobody says how many$/);
  });

  it('answers the reads of context-aware policies, as the kind changes', async () => {
    assert.match(await world.verdict('known-team'), /no params found/);
    await world.create('ConfigMap', { name: 'teams', namespace: 'shop' }, { data: { names: 'db' } });
    await world.says('known-team', /^not a known team$/);
    await world.patch('ConfigMap', 'teams', { data: { names: 'db,web' } });
    await world.says('known-team', /^allowed$/);
  });
});
