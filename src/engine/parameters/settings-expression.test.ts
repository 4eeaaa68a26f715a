import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../values/index.ts';
import { MAX_OVERRIDES_LENGTH, type Overrides, SettingsExpression } from './settings-expression.ts';

const OVERRIDABLE = ['uid', 'paths'];
const NAMESPACE = { metadata: { name: 'tool-a', labels: { tier: 'gold' }, annotations: { uid: '7' } } };

function evaluated(text: string, params: JsonObject = {}, namespace: JsonObject | null = NAMESPACE): Overrides {
  const compiled = SettingsExpression.compile(text, OVERRIDABLE);
  assert.ok('expression' in compiled, JSON.stringify(compiled));
  return compiled.expression.evaluate(params, namespace);
}

function compileProblem(text: string): string {
  const compiled = SettingsExpression.compile(text, OVERRIDABLE);
  assert.ok('problem' in compiled, 'expected the expression to be refused');
  return compiled.problem;
}

describe('the values of a settings expression', () => {
  const cases: readonly [title: string, text: string, params: JsonObject, values: JsonObject][] = [
    ['a field', "{'uid': params.spec.uid}", { spec: { uid: 5 } }, { uid: 5 }],
    ['a label', "{'paths': [namespaceObject.metadata.labels['tier']]}", {}, { paths: ['gold'] }],
    ['an annotation that the policy lists', "{'uid': int(namespaceObject.metadata.annotations.uid)}", {}, { uid: 7 }],
    ['an optional field', "{?'uid': params.?spec.?uid}", {}, {}],
    [
      'a null, which keeps the value of the settings',
      "{'uid': null, 'paths': params.paths}",
      { paths: [] },
      { paths: [] },
    ],
    ['a map of the parameters', 'params.settings', { settings: { uid: 1 } }, { uid: 1 }],
    ['values of several types', "{'uid': 1, 'paths': ['a', 2]}", {}, { uid: 1, paths: ['a', 2] }],
    ['a double', "{'uid': 1.0}", {}, { uid: 1 }],
  ];
  for (const [title, text, params, values] of cases) {
    it(`can be ${title}`, () => {
      assert.deepEqual(evaluated(text, params), { values });
    });
  }

  it('keep a key __proto__ out of the prototype', () => {
    const compiled = SettingsExpression.compile('params', ['__proto__']);
    assert.ok('expression' in compiled);
    const result = compiled.expression.evaluate(JSON.parse('{"__proto__": {"uid": 1}}') as JsonObject, null);
    assert.ok('values' in result);
    assert.deepEqual(Object.keys(result.values), ['__proto__']);
  });
});

describe('a settings expression has no values', () => {
  const cases: readonly [title: string, text: string, params: JsonObject, problem: RegExp][] = [
    ['that fails', "{'uid': params.spec.uid}", {}, /^settingsExpression failed: no such key: spec/],
    ['that sets another key', 'params', { privileged: true }, /the key "privileged" is not overridable: add it/],
    ['that sets a misspelt key', 'params', { uids: 1 }, /"uids" is not overridable: did you mean "uid"\?/],
    ['that sets __proto__', 'params', JSON.parse('{"__proto__": 1}') as JsonObject, /"__proto__" is not overridable/],
    ['whose result is no map', 'params.x', { x: [1] }, /expected a map of settings/],
    ['with a value that is no JSON', "{'uid': params.x / 0.0}", { x: 1.5 }, /no JSON: unsupported number: Infinity/],
    [
      'over its cost budget',
      "{'uid': params.l.all(a, params.l.all(b, params.l.all(c, a + b + c >= 0)))}",
      { l: Array.from({ length: 400 }, (_, index) => index) },
      /cost limit|cancelled/,
    ],
  ];
  for (const [title, text, params, problem] of cases) {
    it(title, () => {
      const result = evaluated(text, params);
      assert.ok('problem' in result, JSON.stringify(result).slice(0, 200));
      assert.match(result.problem, problem);
    });
  }

  it('that reads the namespace of a cluster-scoped request', () => {
    assert.ok('problem' in evaluated("{'uid': namespaceObject.metadata.name}", {}, null));
  });

  it('that are larger than the limit', () => {
    const result = evaluated("{'paths': params.x}", { x: 'x'.repeat(MAX_OVERRIDES_LENGTH) });
    assert.ok('problem' in result);
    assert.match(result.problem, /at most 65536 characters, got more/);
  });

  it('that are nested deeper than the limit', () => {
    const nested = (levels: number): JsonObject[string] => {
      let value: JsonObject[string] = 1;
      for (let level = 0; level < levels; level += 1) {
        value = level % 2 === 0 ? [value] : { a: value };
      }
      return value;
    };
    assert.ok('values' in evaluated("{'paths': params.x}", { x: nested(99) }));
    const result = evaluated("{'paths': params.x}", { x: nested(100) });
    assert.ok('problem' in result);
    assert.match(result.problem, /at most 100 levels, got more/);
  });

  it('that share elements exponentially', () => {
    const compiled = SettingsExpression.compile("{'paths': [params.a]}", OVERRIDABLE);
    assert.ok('expression' in compiled);
    let shared: JsonObject[string] = ['x'];
    for (let depth = 0; depth < 40; depth += 1) {
      shared = [shared, shared];
    }
    const result = compiled.expression.evaluate({ a: shared }, null);
    assert.ok('problem' in result);
  });
});

describe('a settings expression is refused', () => {
  const cases: readonly [title: string, text: string, problem: RegExp][] = [
    ['that does not parse', "{'uid': ", /does not compile: .*Syntax error/],
    ['that reads the request', "{'uid': request.uid}", /undeclared reference to 'request'/],
    ['that reads the object', "{'uid': object.spec}", /undeclared reference to 'object'/],
    ['that reads other fields of the namespace', "{'uid': namespaceObject.spec}", /undefined field 'spec'/],
    ['whose result is a list', "['uid']", /a map with keys of settings, got list\(string\)/],
    ['whose result has other keys than texts', '{1: 2}', /a map with keys of settings, got map\(int, int\)/],
    ['that sets a key that is not overridable', "{'privileged': true}", /"privileged" is not overridable/],
  ];
  for (const [title, text, problem] of cases) {
    it(title, () => {
      assert.match(compileProblem(text), problem);
    });
  }
});
