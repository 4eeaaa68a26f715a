import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { ApiError, type Cluster } from '../cluster/index.ts';
import { EvaluationHost } from '../evaluation/index.ts';
import { knownKind, type KubernetesObject, type ResourceType } from '../resources/index.ts';
import { auditCluster } from './audit-cluster.ts';
import type { AuditPart } from './audit-kind.ts';
import type { AuditPolicy } from './audit-policy.ts';
import type { Coverage } from './coverage.ts';
import type { AuditScope } from './plan-audit.ts';
import { celSpec, ruleFor, samplePod, samplePolicy } from './testing/sample-policies.ts';

const PODS = knownKind('v1', 'Pod');
const SERVICES = knownKind('v1', 'Service');
const SECRETS = knownKind('v1', 'Secret');
const NAMESPACES = knownKind('v1', 'Namespace');
const DEPLOYMENTS = knownKind('apps/v1', 'Deployment');
const ROLES = knownKind('rbac.authorization.k8s.io/v1', 'ClusterRole');
const BINDINGS = knownKind('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding');

const NOT_LATEST = "object.spec.containers.all(c, !c.image.endsWith(':latest'))";

function deployment(namespace: string, name: string, image: string): KubernetesObject {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image }] } };
  const spec = { selector: { matchLabels: labels }, template };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace, name }, spec };
}

/** All parts of an audit together. */
interface Audit {
  readonly results: AuditPart['results'];
  readonly coverage: readonly Coverage[];
}

describe('an audit of a cluster', () => {
  let embedded: EmbeddedCluster;
  let host: EvaluationHost;
  let admin: Cluster;

  before(async () => {
    embedded = await EmbeddedCluster.open();
    ({ admin } = embedded);
    host = new EvaluationHost({
      cacheDir: join(tmpdir(), 'portcullis-audit'),
      workers: 2,
      defaultTimeoutSeconds: 2,
      lookups: { cluster: admin, log: pino({ level: 'silent' }) },
      log: () => undefined,
    });
    await host.start();
    const create = (type: ResourceType, object: unknown): Promise<unknown> =>
      admin.create(type, object as KubernetesObject);
    for (const [name, labels] of [
      ['shop', { tier: 'prod' }],
      ['play', {}],
      ['kube-system', undefined],
    ] as const) {
      if (labels !== undefined) {
        await create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
      }
      await create(PODS, samplePod(name, 'bad', 'web:latest', { app: 'web' }));
      await create(PODS, samplePod(name, 'good', 'web:1'));
    }
    await create(DEPLOYMENTS, deployment('shop', 'web', 'web:latest'));
    const ports = [{ port: 80 }];
    await create(SERVICES, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'shop', name: 'web' },
      spec: { ports },
    });
    await create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'shop', name: 'key' }, data: {} });
  });
  after(async () => {
    await host[Symbol.asyncDispose]();
    await embedded[Symbol.asyncDispose]();
  });

  async function audit(
    policies: readonly AuditPolicy[],
    {
      cluster = admin,
      scope = {},
      using = host,
    }: {
      readonly using?: Pick<EvaluationHost, 'serve' | 'evaluate'>;
      readonly cluster?: Pick<Cluster, 'list' | 'discovery'>;
      readonly scope?: Omit<AuditScope, 'hasCluster' | 'knowsAllKinds' | 'unavailable'>;
    } = {},
  ): Promise<Audit> {
    const parts: AuditPart[] = [];
    for await (const part of auditCluster({ cluster, host: using, policies, scope, now: () => 0 })) {
      parts.push(part);
    }
    return {
      results: parts.flatMap(({ results }) => results),
      coverage: parts.flatMap(({ coverage }) => coverage),
    };
  }

  const texts = ({ results }: Audit): readonly string[] =>
    results
      .map(({ policy, result, object: { kind, namespace = '', name }, message = '' }) =>
        [policy, result, kind, `${namespace}/${name}`, message].join(' '),
      )
      .toSorted();

  /** Kind, state, reason, and counts of scanned, matched and failed objects. */
  const covered = ({ coverage }: Audit): readonly string[] =>
    coverage
      .map(({ kind, namespace, state, reason, counts }) =>
        [
          kind?.resource ?? '*',
          ...(namespace === undefined ? [] : [`in ${namespace}`]),
          state,
          ...(reason === undefined ? [] : [reason]),
          `${counts.scanned}/${counts.matched}/${counts.failed}`,
        ].join(' '),
      )
      .toSorted();

  it('finds the objects that a policy rejects, outside of exempt namespaces', async () => {
    const found = await audit([samplePolicy('latest', celSpec(NOT_LATEST))]);
    assert.deepEqual(texts(found), ['cap/latest fail Pod play/bad no', 'cap/latest fail Pod shop/bad no']);
    assert.deepEqual(covered(found), ['pods Scanned 6/4/2']);
    assert.equal(found.coverage[0]?.scannedAt, '1970-01-01T00:00:00.000Z');
  });

  it('judges objects that are alike for a policy once, and Namespaces by their own names', async () => {
    let evaluations = 0;
    const counting: Pick<EvaluationHost, 'serve' | 'evaluate'> = {
      serve: (policies) => host.serve(policies),
      evaluate: (object, options) => {
        evaluations += 1;
        return host.evaluate(object, options);
      },
    };
    const policies = [samplePolicy('all', celSpec('false', { rules: [ruleFor('namespaces')] }))];
    const found = await audit(policies, { using: counting });
    assert.deepEqual(
      texts(found),
      ['default', 'kube-node-lease', 'kube-public', 'play', 'shop'].map((name) => `cap/all fail Namespace /${name} no`),
    );
    const before = evaluations;
    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        admin.create(SERVICES, {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { namespace: 'play', name: `many-${index}` },
          spec: { ports: [{ port: 80 }] },
        }),
      ),
    );
    const services = [
      samplePolicy('ports', celSpec('object.spec.ports.all(p, p.port != 80)', { rules: [ruleFor('services')] })),
    ];
    const many = await audit(services, { using: counting, scope: { namespace: 'play' } });
    await admin.deleteCollection(SERVICES, { namespace: 'play' });
    assert.equal(many.results.length, 40);
    // As many as are judged at once.
    assert.ok(evaluations - before <= 16, `${evaluations - before} evaluations`);
  });

  it('honours selectors, match conditions, and the namespace of a policy', async () => {
    const prod = { namespaceSelector: { matchLabels: { tier: 'prod' } } };
    const app = { objectSelector: { matchLabels: { app: 'web' } } };
    const good = { matchConditions: [{ name: 'good', expression: "object.metadata.name == 'good'" }] };
    const found = await audit([
      samplePolicy('prod', celSpec('false', prod)),
      samplePolicy('app', celSpec('false', app)),
      samplePolicy('condition', celSpec('false', good)),
      samplePolicy('own', celSpec('false'), 'play'),
    ]);
    assert.deepEqual(texts(found), [
      'ap/play/own fail Pod play/bad no',
      'ap/play/own fail Pod play/good no',
      'cap/app fail Pod play/bad no',
      'cap/app fail Pod shop/bad no',
      'cap/condition fail Pod play/good no',
      'cap/condition fail Pod shop/good no',
      'cap/prod fail Pod shop/bad no',
      'cap/prod fail Pod shop/good no',
    ]);
  });

  it('lists only the namespace of policies of one', async () => {
    const found = await audit([samplePolicy('own', celSpec('false'), 'play')]);
    assert.deepEqual(covered(found), ['pods in play Scanned 2/2/2']);
  });

  it('judges pod templates, groups, and policies in monitor mode', async () => {
    const group = {
      rules: [ruleFor('pods')],
      policies: { latest: { module: 'builtin:cel', settings: { validations: [{ expression: NOT_LATEST }] } } },
      expression: 'latest()',
      message: 'group says no',
      mode: 'monitor',
    };
    const found = await audit([
      samplePolicy('templates', celSpec(NOT_LATEST, { podTemplates: 'Warn' })),
      samplePolicy('group', group),
    ]);
    assert.deepEqual(
      texts(found).filter((text) => text.includes('shop/')),
      [
        'cap/group fail Pod shop/bad group says no',
        'cap/templates fail Deployment shop/web in the pod template (spec.template): no',
        'cap/templates fail Pod shop/bad no',
      ],
    );
    const ofGroup = found.results.find(({ policy }) => policy === 'cap/group');
    assert.deepEqual(
      [ofGroup?.mode, ofGroup?.members?.map(({ name, allowed }) => [name, allowed])],
      ['monitor', [['latest', false]]],
    );
  });

  it('says of a policy that changes objects which it would change', async () => {
    const expression = 'Object{metadata: Object.metadata{labels: {"seen": "yes"}}}';
    const mutations = [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }];
    const found = await audit([samplePolicy('labels', celSpec('', { mutating: true, settings: { mutations } }))], {
      scope: { namespace: 'shop' },
    });
    assert.deepEqual(texts(found), ['cap/labels wouldChange Pod shop/bad ', 'cap/labels wouldChange Pod shop/good ']);
  });

  it('resolves stars by what the cluster serves, and reads Secrets on demand only', async () => {
    const all = samplePolicy('all', celSpec('false', { rules: [ruleFor('*')] }));
    const found = await audit([all], { scope: { namespace: 'shop' } });
    assert.deepEqual(
      found.coverage.filter(({ kind }) => kind?.resource === 'secrets').map(({ state, reason }) => [state, reason]),
      [['NotRead', 'Secrets']],
    );
    assert.ok(texts(found).includes('cap/all fail Service shop/web no'), texts(found).join('\n'));
    assert.ok(!texts(found).some((text) => text.includes(' Secret ')));
    const read = await audit([all], { scope: { namespace: 'shop', includesSecrets: true } });
    assert.ok(texts(read).includes('cap/all fail Secret shop/key no'));
  });

  it('says what is not served, not auditable, or not to be loaded; others are judged', async () => {
    const found = await audit([
      samplePolicy('widgets', celSpec('false', { rules: [ruleFor('widgets'), ruleFor('services')] })),
      samplePolicy('user', celSpec("request.userInfo.username == 'x'")),
      samplePolicy('gone', celSpec('true', { module: 'file:///does/not/exist.wasm', settings: {} })),
    ]);
    assert.deepEqual(covered(found), [
      '* NotAuditable UserInfo 0/0/0',
      '* NotServed NotServed 0/0/0',
      'pods Failed NotLoaded 0/0/0',
      'services Scanned 2/2/2',
    ]);
  });

  it('is not clean where an API does not answer that rules name, also by a star', async () => {
    const { discovery } = admin;
    const down = {
      resources: (...args: Parameters<typeof discovery.resources>) => discovery.resources(...args),
      find: (...args: Parameters<typeof discovery.find>) => discovery.find(...args),
      unavailable: async () => ['metrics.example.com/v1'],
    };
    const cluster = { discovery: down, list: admin.list.bind(admin) };
    const found = await audit(
      [
        samplePolicy(
          'named',
          celSpec('false', { rules: [ruleFor('metrics', { apiGroups: ['metrics.example.com'] })] }),
        ),
        samplePolicy('starred', celSpec('true', { rules: [ruleFor('pods', { apiGroups: ['*'] })] })),
        samplePolicy('others', celSpec('true')),
      ],
      { cluster },
    );
    assert.deepEqual(
      found.coverage.map(({ policy, state, reason = '' }) => `${policy} ${state} ${reason}`.trim()).toSorted(),
      [
        'cap/named Failed NotDiscovered',
        'cap/others Scanned',
        'cap/starred Failed NotDiscovered',
        'cap/starred Scanned',
      ],
    );
  });

  it('is not clean where a right is missing, and names the rule; other kinds are judged all the same', async () => {
    const metadata = { name: 'auditor' };
    const rules = [{ apiGroups: [''], resources: ['services'], verbs: ['list'] }];
    await admin.create(ROLES, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata,
      rules,
    });
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'auditor' };
    const subjects = [{ kind: 'User', name: 'eve', apiGroup: 'rbac.authorization.k8s.io' }];
    await admin.create(BINDINGS, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef,
      subjects,
    });
    const both = samplePolicy('both', celSpec('false', { rules: [ruleFor('pods'), ruleFor('services')] }));
    const found = await audit([both], { cluster: embedded.as({ username: 'eve', groups: [] }) });
    assert.deepEqual(covered(found), ['pods Forbidden Forbidden 0/0/0', 'services Scanned 2/2/2']);
    const [pods] = found.coverage.filter(({ state }) => state === 'Forbidden');
    assert.deepEqual(pods?.missingRule, { apiGroups: [''], resources: ['pods'], verbs: ['list'] });
    assert.equal(pods?.scannedAt, undefined);
    assert.deepEqual(texts(found), [
      'cap/both fail Service default/kubernetes no',
      'cap/both fail Service shop/web no',
    ]);
  });

  /** The cluster with pages of two objects, whose second page fails some times. */
  function failing(
    error: () => Error,
    times: number,
  ): Pick<Cluster, 'list' | 'discovery'> & { readonly lists: () => number } {
    let failures = times;
    let lists = 0;
    return {
      discovery: admin.discovery,
      lists: () => lists,
      list: async (type, options = {}) => {
        lists += options.continue === undefined ? 1 : 0;
        if (options.continue !== undefined && failures > 0) {
          failures -= 1;
          throw error();
        }
        return await admin.list(type, { ...options, limit: 2 });
      },
    };
  }

  it('starts a kind anew whose list expired, without double findings', async () => {
    const cluster = failing(() => new ApiError(410, 'Expired', 'too old'), 2);
    const found = await audit([samplePolicy('latest', celSpec(NOT_LATEST))], { cluster });
    assert.deepEqual(texts(found), ['cap/latest fail Pod play/bad no', 'cap/latest fail Pod shop/bad no']);
    assert.deepEqual([covered(found), cluster.lists()], [['pods Scanned 6/4/2'], 3]);
  });

  it('is partial where a list expires each time, or a right is taken away in the middle', async () => {
    const policies = [samplePolicy('latest', celSpec('false'))];
    const expired = await audit(policies, {
      cluster: failing(() => new ApiError(410, 'Expired', 'too old'), Infinity),
    });
    assert.deepEqual(covered(expired), ['pods Partial Expired 2/0/0']);
    const taken = await audit(policies, {
      cluster: failing(() => new ApiError(403, 'Forbidden', 'no more'), Infinity),
    });
    assert.deepEqual(covered(taken), ['pods Partial Forbidden 2/0/0']);
    assert.deepEqual(taken.coverage[0]?.missingRule?.resources, ['pods']);
  });

  it('counts objects without a verdict, and is partial', async () => {
    const error = samplePolicy(
      'errs',
      celSpec('true', { matchConditions: [{ name: 'c', expression: "object.spec.nothing == 'x'" }] }),
    );
    const found = await audit([error]);
    assert.deepEqual(covered(found), ['pods Partial NotJudged 6/4/0']);
    assert.deepEqual(found.coverage[0]?.counts.unjudged, 4);
    assert.equal(found.results.filter(({ result }) => result === 'error').length, 4);
  });

  it('judges an object as a request to create it: without status and fields that API servers set', async () => {
    const unseen = ['object.status', 'object.metadata.managedFields', 'object.metadata.resourceVersion'];
    const found = await audit([samplePolicy('seen', celSpec(unseen.map((field) => `!has(${field})`).join(' && ')))]);
    assert.deepEqual(texts(found), []);
    assert.deepEqual(covered(found), ['pods Scanned 6/4/0']);
  });
});
