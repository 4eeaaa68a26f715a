import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { KubernetesObject } from '../../resources/index.ts';
import { isJsonObject, parseJson } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { compareObject } from './object-comparison.ts';
import type { ComparisonOptions, ObjectComparison } from './object-comparison.ts';
import { jsonObjects } from './testing/json-values.ts';

const MUST_HAVE: ComparisonOptions = { type: 'musthave' };
const MUST_ONLY_HAVE: ComparisonOptions = { type: 'mustonlyhave' };

function pod(fields: JsonObject, metadata: JsonObject = {}, kind = 'Pod'): JsonObject & KubernetesObject {
  return { apiVersion: 'v1', kind, metadata: { name: 'x', namespace: 'ns', ...metadata }, ...fields };
}

type Compared = Extract<ObjectComparison, { type: 'compared' }>;

function compare(desired: JsonObject, live: KubernetesObject, options = MUST_HAVE): Compared {
  const comparison = compareObject(desired, live, options);
  assert.equal(comparison.type, 'compared', 'message' in comparison ? comparison.message : '');
  return comparison;
}

function messageOf(desired: JsonObject, live: KubernetesObject): string {
  const comparison = compareObject(desired, live, MUST_HAVE);
  return comparison.type === 'failed' ? comparison.message : 'compared';
}

interface EquivalenceCase {
  readonly desired: JsonValue;
  readonly live: JsonValue | undefined;
  readonly is: 'equal' | 'different' | 'doubtful';
}

/** Values of the field `spec.a`. */
const EQUIVALENCES: readonly EquivalenceCase[] = [
  { desired: '0.1', live: '100m', is: 'equal' },
  { desired: '1Gi', live: '1024Mi', is: 'equal' },
  { desired: '1.0', live: '1', is: 'equal' },
  { desired: '1', live: 1, is: 'different' },
  { desired: 1, live: '1', is: 'equal' },
  { desired: 'true', live: true, is: 'equal' },
  { desired: true, live: 'true', is: 'equal' },
  { desired: 'a', live: 'b', is: 'different' },
  { desired: 'a', live: undefined, is: 'different' },
  { desired: '', live: undefined, is: 'different' },
  { desired: 0, live: undefined, is: 'doubtful' },
  { desired: false, live: null, is: 'doubtful' },
  { desired: 1, live: undefined, is: 'different' },
  { desired: null, live: undefined, is: 'doubtful' },
  { desired: null, live: 'x', is: 'different' },
  { desired: null, live: { b: 1 }, is: 'equal' },
  { desired: {}, live: undefined, is: 'different' },
  { desired: [], live: undefined, is: 'doubtful' },
  { desired: [1, 2], live: [2, 1], is: 'equal' },
  { desired: ['0.1'], live: ['100m'], is: 'different' },
  { desired: [{ cpu: '0.1' }], live: [{ cpu: '100m' }], is: 'equal' },
  { desired: [{ name: 'a', dir: {} }], live: [{ name: 'a' }], is: 'doubtful' },
  { desired: [{ a: [1, 2] }, { a: [3] }], live: [{ a: [3] }, { a: [2, 1] }], is: 'equal' },
];

describe('comparing a template with a live object', () => {
  for (const { desired, live, is } of EQUIVALENCES) {
    it(`finds ${JSON.stringify(desired)} and ${JSON.stringify(live)} ${is}`, () => {
      const { matches, isDoubtful } = compare(
        pod({ spec: { a: desired } }),
        pod({ spec: { ...(live === undefined ? {} : { a: live }), other: 1 } }),
      );
      assert.deepEqual(matches ? (isDoubtful ? 'doubtful' : 'equal') : 'different', is);
    });
  }

  it('names the places that differ', () => {
    const desired = pod(
      { spec: { replicas: 2, same: 1, items: [1], 'odd.key': { a: 1 } } },
      { labels: { app: 'new' }, annotations: { 'a.b/c': '1' } },
    );
    const live = pod({ spec: { replicas: 1, same: 1, items: [], 'odd.key': { a: 2 } } }, { labels: { app: 'old' } });
    assert.deepEqual(compare(desired, live).mismatches, [
      'metadata.annotations',
      'metadata.labels.app',
      'spec.items',
      'spec["odd.key"].a',
      'spec.replicas',
    ]);
    assert.equal(compare(pod({ spec: manyFields(100) }), pod({ spec: {} })).mismatches.length, 20);
  });

  it('fails when a field has another shape', () => {
    const message = 'Error merging changes into key "spec": object type of template and existing do not match';
    assert.equal(messageOf(pod({ spec: { a: 1 } }), pod({ spec: [1] })), message);
    assert.equal(messageOf(pod({ spec: [1] }), pod({ spec: 'x' })), message);
  });

  it('compares the status, and never writes it', () => {
    const desired = pod({ spec: { a: 1 }, status: { phase: 'Ready' } });
    const live = pod({ spec: { a: 1 }, status: { phase: 'Pending', x: 1 } });
    const { matches, statusMatches, merged } = compare(desired, live);
    assert.deepEqual([matches, statusMatches], [true, false]);
    assert.deepEqual(merged, live);
  });

  it('merges lists at the top of an object', () => {
    const role = (rules: JsonValue): JsonObject & KubernetesObject => pod({ rules });
    const { matches, merged } = compare(role([{ verbs: ['get'] }]), role([{ verbs: ['list'] }]));
    assert.equal(matches, false);
    assert.deepEqual(merged['rules'], [{ verbs: ['get'] }, { verbs: ['list'] }]);
  });

  it('merges until merging again changes nothing', () => {
    const desired = pod({ spec: { l: [{ a: 1 }, { a: 1 }, { a: 1, b: 1 }] } });
    const live = pod({
      spec: {
        l: [
          { a: 1, b: 1 },
          { a: 1, c: 1 },
        ],
      },
    });
    const { merged } = compare(desired, live);
    assert.equal(compare(desired, merged).matches, true);
  });

  it('takes list keys', () => {
    const { merged } = compare(pod({ spec: { ports: [{ port: 1, a: 1 }] } }), pod({ spec: { ports: [{ port: 1 }] } }), {
      ...MUST_HAVE,
      listKeys: [{ path: 'spec.ports', key: 'port' }],
    });
    assert.deepEqual(merged['spec'], { ports: [{ port: 1, a: 1 }] });
    const invalid = compareObject(pod({ spec: {} }), pod({}), { ...MUST_HAVE, listKeys: [{ path: 'a..b', key: 'c' }] });
    assert.equal(invalid.type === 'failed' && invalid.code, 'invalid-list-key');
  });
});

describe('mustonlyhave', () => {
  it('takes maps and lists of the template as they are', () => {
    const { matches, merged } = compare(pod({ spec: { a: [1] } }), pod({ spec: { a: [1, 2], b: 1 } }), MUST_ONLY_HAVE);
    assert.equal(matches, false);
    assert.deepEqual(merged['spec'], { a: [1] });
  });

  it('removes other fields but the status, metadata, and what Kubernetes manages', () => {
    const live = pod({ spec: { a: 1 }, other: 1, status: { b: 1 } }, { labels: { a: 'b' } });
    const { mismatches, merged } = compare(pod({ spec: { a: 1 } }), live, MUST_ONLY_HAVE);
    assert.deepEqual(mismatches, ['other']);
    const { other: _other, ...kept } = live;
    assert.deepEqual(merged, kept);
    const account = pod({ secrets: [], imagePullSecrets: [], automount: true }, {}, 'ServiceAccount');
    assert.deepEqual(compare(pod({}, {}, 'ServiceAccount'), account, MUST_ONLY_HAVE).mismatches, ['automount']);
  });

  it('keeps the metadata type apart', () => {
    const live = pod({ spec: { a: 1 } }, { labels: { a: 'b', c: 'd' } });
    const desired = pod({ spec: { a: 1 } }, { labels: { a: 'b' } });
    assert.equal(compare(desired, live, MUST_ONLY_HAVE).matches, false);
    assert.equal(compare(desired, live, { ...MUST_ONLY_HAVE, metadataType: 'musthave' }).matches, true);
    const { merged } = compare(desired, live, { ...MUST_HAVE, metadataType: 'mustonlyhave' });
    assert.deepEqual(merged.metadata.labels, { a: 'b' });
  });
});

describe('metadata', () => {
  it('is labels and annotations only', () => {
    const desired = pod({}, { labels: { a: 'b' }, finalizers: ['x'], ownerReferences: [] });
    const live = pod({}, { labels: { a: 'b', c: 'd' }, uid: '1' });
    const { matches, isDoubtful, merged } = compare(desired, live);
    assert.deepEqual([matches, isDoubtful], [true, false]);
    assert.deepEqual(merged, live);
  });

  it('is left alone where the template has none', () => {
    const live = pod({}, { labels: { a: 'b' }, annotations: { c: 'd' } });
    for (const options of [MUST_HAVE, MUST_ONLY_HAVE]) {
      assert.deepEqual(compare(pod({}), live, options).merged, live);
    }
  });

  it('ignores and keeps what client-side apply notes', () => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', a: 'old' };
    const live = pod({}, { annotations });
    const desired = pod({}, { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': 'x', a: 'new' } });
    for (const options of [MUST_HAVE, MUST_ONLY_HAVE]) {
      const { mismatches, merged } = compare(desired, live, options);
      assert.deepEqual(mismatches, ['metadata.annotations.a']);
      assert.deepEqual(merged.metadata.annotations, { ...annotations, a: 'new' });
    }
  });

  it('keeps the security context of OpenShift on namespaces', () => {
    const annotations = { 'openshift.io/sa.scc.mcs': 's0' };
    const verdict = (kind: string): boolean =>
      compare(
        pod({}, { annotations: { a: 'b' } }, kind),
        pod({}, { annotations: { a: 'b', ...annotations } }, kind),
        MUST_ONLY_HAVE,
      ).matches;
    assert.deepEqual([verdict('Namespace'), verdict('Pod')], [true, false]);
  });

  for (const [metadata, message] of [
    [
      { annotations: { case: 10 } },
      'invalid annotation, error: contains non-string value in the map under key "case": 10 is of the type int64, expected string',
    ],
    [
      { labels: { a: 'b', c: true } },
      'invalid label, error: contains non-string value in the map under key "c": true is of the type bool, expected string',
    ],
    [
      { labels: { c: 1.5 } },
      'invalid label, error: contains non-string value in the map under key "c": 1.5 is of the type float64, expected string',
    ],
    [
      { annotations: { c: null } },
      'invalid annotation, error: contains non-string value in the map under key "c": <nil> is of the type <nil>, expected string',
    ],
    [{ labels: ['a'] }, 'invalid label, error: [a] is of the type []interface {}, expected map[string]interface {}'],
  ] as const) {
    it(`refuses ${JSON.stringify(metadata)}`, () => {
      const given = parseJson(JSON.stringify(metadata)) as JsonObject;
      assert.equal(messageOf(pod({}, given), pod({})), message);
    });
  }
});

describe('the stringData of a Secret', () => {
  const secret = (fields: JsonObject): JsonObject & KubernetesObject => pod(fields, {}, 'Secret');
  const live = secret({ data: { a: 'eA==', b: 'eQ==' } });

  it('is compared with the decoded data', () => {
    const { matches, isDoubtful, merged } = compare(secret({ stringData: { a: 'x' } }), live);
    assert.deepEqual([matches, isDoubtful], [true, false]);
    assert.deepEqual(merged, live);
  });

  it('is written as it is', () => {
    const { mismatches, merged } = compare(secret({ stringData: { a: 'new' } }), live);
    assert.deepEqual(mismatches, ['stringData.a']);
    assert.deepEqual(merged, { ...live, stringData: { a: 'new' } });
  });

  it('replaces the data under mustonlyhave', () => {
    const { matches, merged } = compare(secret({ stringData: { a: 'x' } }), live, MUST_ONLY_HAVE);
    assert.equal(matches, false);
    assert.deepEqual([merged['stringData'], merged['data']], [{ a: 'x' }, undefined]);
    assert.equal(compare(secret({ stringData: { a: 'x', b: 'y' } }), live, MUST_ONLY_HAVE).matches, true);
  });

  it('fails when data cannot be decoded', () => {
    const desired = secret({ stringData: { a: 'x' } });
    assert.equal(messageOf(desired, secret({ data: { a: '?' } })), 'Error decoding secret: x');
    assert.equal(messageOf(desired, secret({ data: { a: 1 } })), 'Error accessing encoded data');
    assert.equal(messageOf(desired, secret({ data: { a: 'gIA=' } })), 'compared', 'not UTF-8');
  });
});

describe('templates without a name', () => {
  const options = { ...MUST_HAVE, zeroValueEqualsNil: true };

  it('take absent values for zero values', () => {
    for (const desired of [{ spec: { a: {} } }, { spec: { a: [] } }, { spec: { a: 0 } }, { immutable: false }]) {
      assert.equal(compare(pod(desired), pod({ spec: { b: 1 } }), options).matches, true, JSON.stringify(desired));
    }
    assert.equal(compare(pod({ spec: { a: 'x' } }), pod({ spec: {} }), options).matches, false);
  });
});

/** Whether a list has two items of one name: they are merged with the same live item, in turn. API servers refuse such lists. */
function hasTwins(value: JsonValue): boolean {
  if (!Array.isArray(value)) {
    return isJsonObject(value) && Object.values(value).some((one) => one !== undefined && hasTwins(one));
  }
  const names = value.filter(isJsonObject).flatMap((item) => (item['name'] === undefined ? [] : [item['name']]));
  const distinct = new Set(names.map((name) => JSON.stringify(name)));
  return distinct.size < names.length || value.some(hasTwins);
}

describe('laws of comparing', () => {
  it('an object as merged matches, and nothing is left to write', () => {
    for (const options of [MUST_HAVE, MUST_ONLY_HAVE]) {
      fc.assert(
        fc.property(jsonObjects(), jsonObjects(), (desired, live) => {
          fc.pre(!hasTwins(desired));
          const first = compareObject(pod(desired), pod(live), options);
          if (first.type === 'failed') {
            return;
          }
          const again = compare(pod(desired), first.merged, options);
          assert.deepEqual(again.mismatches, []);
        }),
        { numRuns: 500 },
      );
    }
  });

  it('changes neither object', () => {
    fc.assert(
      fc.property(jsonObjects(), jsonObjects(), (desired, live) => {
        const before = JSON.stringify([pod(desired), pod(live)]);
        const [template, object] = [pod(desired), pod(live)];
        compareObject(template, object, MUST_HAVE);
        assert.equal(JSON.stringify([template, object]), before);
      }),
    );
  });

  it('the order of live lists does not matter to what matches', () => {
    const items = fc.array(fc.oneof(fc.integer({ max: 3, min: 1 }), jsonObjects()), { maxLength: 5 });
    fc.assert(
      fc.property(items, (list) => {
        const live = [...list].reverse();
        assert.equal(compare(pod({ spec: { list } }), pod({ spec: { list } })).matches, true);
        assert.equal(compare(pod({ spec: { list } }), pod({ spec: { list: live } }), MUST_ONLY_HAVE).matches, true);
      }),
    );
  });
});

describe('hostile objects', () => {
  it('with keys such as __proto__ are data', () => {
    const live = parseJson('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"__proto__":{"a":1}}');
    const desired = parseJson('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"__proto__":{"b":2}}');
    const { mismatches, merged } = compare(desired as JsonObject, live as KubernetesObject);
    assert.deepEqual(mismatches, ['__proto__.b']);
    assert.equal(Object.getPrototypeOf(merged), Object.prototype);
    assert.match(JSON.stringify(merged), /"__proto__":\{"a":1,"b":2\}/);
  });

  it('that are nested too deeply are an error', () => {
    const nested = (depth: number): JsonValue =>
      parseJson(`${'{"a":['.repeat(depth)}1${']}'.repeat(depth)}`) as JsonValue;
    const deep = compareObject(pod({ spec: nested(5_000) }), pod({ spec: {} }), MUST_HAVE);
    assert.equal(deep.type === 'failed' && deep.code, 'too-deep');
    assert.equal(compare(pod({ spec: nested(40) }), pod({ spec: nested(40) })).matches, true);
  });

  it('with lists of similar items end with an error', () => {
    const list = (of: number): JsonValue => Array.from({ length: 5_000 }, (_, index) => ({ a: { b: of * index } }));
    const comparison = compareObject(pod({ spec: { l: list(1) } }), pod({ spec: { l: list(-1) } }), MUST_HAVE);
    assert.equal(comparison.type === 'failed' && comparison.code, 'too-much-work');
  });
});

function manyFields(count: number): JsonObject {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, 1]));
}
