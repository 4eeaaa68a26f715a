import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../engine/index.ts';
import { EvaluationHost } from '../evaluation/index.ts';
import { isJsonObject } from '../resources/index.ts';
import { resultOf } from './audit-result.ts';
import type { AuditPolicy } from './audit-policy.ts';
import { celSpec, samplePolicy } from './testing/sample-policies.ts';
import { VerdictKeys } from './verdict-key.ts';

const PODS = { group: '', version: 'v1', resource: 'pods' };

function keysOf({ definition, match }: AuditPolicy): VerdictKeys {
  assert.ok(match);
  return new VerdictKeys({ definition, match, digests: {} });
}

function pod(spec: JsonValue, metadata: JsonObject = {}): JsonObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'shop', ...metadata }, spec };
}

const labelled = (name: string, labels: JsonObject): JsonObject => ({ metadata: { name, labels } });

describe('the key of a verdict', () => {
  const keys = keysOf(samplePolicy('p', celSpec('object.spec.replicas > 1 && object.metadata.labels["app"] == "web"')));
  const of = (object: JsonObject, more: object = {}): string => keys.of({ object, resource: PODS, ...more });
  const key = of(pod({ replicas: 2 }, { labels: { app: 'web' } }));

  it('stays when something changes that the policy does not read', () => {
    assert.equal(
      of(pod({ replicas: 2, paused: true }, { labels: { app: 'web', tier: 'x' }, annotations: { a: 'b' } })),
      key,
    );
    assert.equal(
      of({ ...pod({ replicas: 2 }, { name: 'other', labels: { app: 'web' } }), status: { phase: 'Running' } }),
      key,
    );
    assert.equal(
      of(pod({ replicas: 2 }, { labels: { app: 'web' } }), { namespace: labelled('shop', { tier: 'x' }) }),
      key,
    );
    assert.equal(keys.sharedKey({ object: pod({ replicas: 2 }, { labels: { app: 'web' } }), resource: PODS }), key);
  });

  it('changes with what the policy reads, also when that goes or has another type', () => {
    const specs: readonly JsonValue[] = [{ replicas: 3 }, { replicas: '2' }, { replicas: null }, {}, null, [], 'x'];
    const all = specs.map((spec) => of(pod(spec, { labels: { app: 'web' } })));
    assert.equal(new Set([key, ...all]).size, specs.length + 1);
    assert.notEqual(of(pod({ replicas: 2 }, { labels: {} })), of(pod({ replicas: 2 })));
  });

  it('changes with the policy, its modules, its namespace, parameters, and objects that are looked up', () => {
    const object = pod({ replicas: 2 }, { labels: { app: 'web' } });
    const found = { apiVersion: 'v1', kind: 'Service', name: 'a', resourceVersion: '1' };
    const match = samplePolicy('p', celSpec('object.spec.replicas > 1')).match ?? assert.fail();
    const { definition } = samplePolicy('p', celSpec('object.spec.replicas > 1'));
    const others = [
      keysOf(samplePolicy('p', celSpec('object.spec.replicas > 1', { mode: 'monitor' }))).of({
        object,
        resource: PODS,
      }),
      keysOf(
        samplePolicy('p', celSpec('object.spec.replicas > 1', { objectSelector: { matchLabels: { a: 'b' } } })),
      ).of({ object, resource: PODS }),
      new VerdictKeys({ definition, match, digests: { m: 'sha256:1' } }).of({ object, resource: PODS }),
      new VerdictKeys({ definition, match, digests: { m: 'sha256:2' } }).of({ object, resource: PODS }),
      of(pod({ replicas: 2 }, { namespace: 'play', labels: { app: 'web' } })),
      of(object, { parameters: { max: 3 } }),
      of(object, { lookedUp: [found] }),
      of(object, { lookedUp: [{ ...found, resourceVersion: '2' }] }),
    ];
    assert.equal(new Set([key, ...others]).size, others.length + 1);
    const two = [found, { ...found, name: 'b' }];
    assert.equal(of(object, { lookedUp: two }), of(object, { lookedUp: two.toReversed() }));
  });

  it('changes with all of the object where parameters may replace what is read', () => {
    const settingsExpression = "{'validations': params.data.validations}";
    const from = { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'limits' } };
    const parameters = { from, overridable: ['validations'], settingsExpression };
    // Settings without any validation are complete with parameters only.
    for (const more of [{}, { settings: { validations: [] } }]) {
      const keys = keysOf(samplePolicy('p', celSpec('object.spec.replicas > 1', { parameters, ...more })));
      const [one, other] = ['a', 'b'].map((name) =>
        keys.of({ object: pod({ replicas: 2 }, { name }), resource: PODS }),
      );
      assert.notEqual(one, other);
      assert.equal(keys.sharedKey({ object: pod({ replicas: 2 }), resource: PODS }), undefined);
    }
  });

  it('changes with labels of the namespace where the policy selects by them, and of a Namespace with its own', () => {
    const selecting = keysOf(
      samplePolicy('p', celSpec('true', { namespaceSelector: { matchLabels: { tier: 'prod' } } })),
    );
    const object = pod({});
    const byLabels = (labels: JsonObject): string =>
      selecting.of({ object, resource: PODS, namespace: labelled('shop', labels) });
    assert.notEqual(byLabels({ tier: 'prod' }), byLabels({ tier: 'test' }));
    const namespaces = { group: '', version: 'v1', resource: 'namespaces' };
    const ofNamespace = (labels: JsonObject): string =>
      selecting.of({ object: { kind: 'Namespace', ...labelled('shop', labels) }, resource: namespaces });
    assert.notEqual(ofNamespace({ tier: 'prod' }), ofNamespace({ tier: 'test' }));
    // Namespaces are exempt by their name.
    const named = (name: string): JsonObject => ({
      kind: 'Namespace',
      ...labelled(name, { 'kubernetes.io/metadata.name': name }),
    });
    assert.notEqual(
      keys.of({ object: named('shop'), resource: namespaces }),
      keys.of({ object: named('kube-system'), resource: namespaces }),
    );
  });

  it('depends on the whole object where a policy changes it, is a module, or checks its pod template', () => {
    const expression = 'Object{metadata: Object.metadata{labels: {"seen": "yes"}}}';
    const mutations = [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }];
    const policies = [
      samplePolicy('mutates', celSpec('', { mutating: true, settings: { mutations } })),
      samplePolicy('module', celSpec('', { module: 'file:///m.wasm', settings: {} })),
      samplePolicy('whole', celSpec('object == object')),
    ];
    for (const policy of policies) {
      const whole = keysOf(policy);
      assert.notEqual(
        whole.of({ object: pod({}), resource: PODS }),
        whole.of({ object: pod({ a: 1 }), resource: PODS }),
        policy.name,
      );
      assert.equal(whole.sharedKey({ object: pod({}), resource: PODS }), undefined);
    }
    const templates = keysOf(samplePolicy('templates', celSpec('has(object.spec)', { podTemplates: 'Warn' })));
    const deployment = (image: string): JsonObject => ({
      kind: 'Deployment',
      metadata: {},
      spec: { template: { spec: { image } } },
    });
    const resource = { group: 'apps', version: 'v1', resource: 'deployments' };
    assert.notEqual(
      templates.of({ object: deployment('a'), resource }),
      templates.of({ object: deployment('b'), resource }),
    );
  });

  it('counts all beside an escaped field', () => {
    const escaped = keysOf(samplePolicy('p', celSpec('object.spec.a__dash__b == 1')));
    assert.notEqual(
      escaped.of({ object: pod({ 'a-b': 1 }), resource: PODS }),
      escaped.of({ object: pod({ 'a-b': 2 }), resource: PODS }),
    );
  });
});

describe('objects with random fields', () => {
  const expressions = [
    'object.spec.a == 1',
    'has(object.spec.a) && object.spec.a.b == "x"',
    'object.spec.?a.?b.orValue("x") == "x"',
    'object.spec.list.all(item, item.a == 1)',
    'object.spec.list[0].a == 1',
    "'a' in object.spec.map && object.spec.map['a'] == 'x'",
    'object.spec[object.metadata.name] == 1',
    'size(object.spec) > 2',
    'object.spec == object.spec.map',
    "request.name != 'b' && request.object.spec.a != 1",
    'object.spec.map.exists(k, k == "b" && object.spec.map[k] == "x")',
    'dyn(object.spec.a) == dyn(object.spec.map)',
  ];
  const policies = expressions.map((expression, index) => samplePolicy(`p${index}`, celSpec(expression)));
  const all = new Map(policies.map((policy) => [policy.id, keysOf(policy)]));
  let host: EvaluationHost;
  before(async () => {
    host = new EvaluationHost({
      cacheDir: join(tmpdir(), 'portcullis-verdict-key'),
      workers: 1,
      find: () => Promise.resolve({ state: 'absent' }),
      log: () => undefined,
    });
    await host.start();
    await host.serve(policies.map(({ id, definition, match }) => ({ id, definition, ...(match && { match }) })));
  });
  after(() => host[Symbol.asyncDispose]());

  const leaf = fc.constantFrom<JsonValue>(1, 2, 'x', 'y', null, true);
  const node = fc.oneof(
    leaf,
    fc.dictionary(fc.constantFrom('a', 'b'), leaf, { maxKeys: 2 }),
    fc.array(leaf, { maxLength: 2 }),
  );
  const spec = fc.oneof(
    {
      weight: 9,
      arbitrary: fc.dictionary(
        fc.constantFrom('a', 'b', 'list', 'map'),
        fc.oneof(node, fc.array(node, { maxLength: 2 })),
        { maxKeys: 4 },
      ),
    },
    { weight: 1, arbitrary: leaf },
  );
  const object = fc
    .record({ name: fc.constantFrom('a', 'b'), spec })
    .map(({ name, spec: value }) => pod(value, { name }));

  it('have equal verdicts where their keys are equal', async () => {
    let equal = 0;
    const verdictOf = async (one: JsonObject): Promise<ReadonlyMap<string, readonly unknown[]>> => {
      const verdicts = await host.evaluate({ object: one, resource: PODS });
      return new Map(verdicts.map((verdict) => [verdict.policy, [resultOf(verdict), verdict.message, verdict.code]]));
    };
    await fc.assert(
      fc.asyncProperty(object, object, async (one, other) => {
        const [before, after] = [await verdictOf(one), await verdictOf(other)];
        for (const [id, keys] of all) {
          if (keys.of({ object: one, resource: PODS }) === keys.of({ object: other, resource: PODS })) {
            equal += 1;
            assert.deepEqual(before.get(id), after.get(id), id);
          }
        }
      }),
      { numRuns: 400 },
    );
    assert.ok(equal > 100, `${equal} equal keys say little`);
  });

  it('keep their key when a field changes that no expression reads', () => {
    fc.assert(
      fc.property(object, fc.constantFrom('status', 'data'), leaf, (one, field, value) => {
        const changed = {
          ...one,
          [field]: value,
          metadata: isJsonObject(one['metadata']) ? { ...one['metadata'], annotations: { a: 'b' } } : {},
        };
        for (const keys of all.values()) {
          assert.equal(keys.of({ object: changed, resource: PODS }), keys.of({ object: one, resource: PODS }));
        }
      }),
      { numRuns: 100 },
    );
  });
});
