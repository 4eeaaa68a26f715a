import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../values/json-text.ts';
import { podReview } from '../testing/reviews.ts';
import { admissionRequest } from './admission-request.ts';
import { type FieldProblem, problemText, readFields } from '../values/field-problem.ts';
import { readLabelSelector } from './label-selector.ts';
import { matchRequest, readMatchResources } from './match-resources.ts';

const RULE = { apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['pods'] };

function matches(
  resources: JsonObject,
  request: JsonObject = {},
  namespaces: Record<string, JsonObject> = {},
): boolean {
  const problems: FieldProblem[] = [];
  const read = readMatchResources(readFields(resources, problems), problems, { isMutating: false, needsRules: false });
  assert.deepEqual(problems, []);
  const parsed = admissionRequest(podReview(request).request as JsonObject);
  return matchRequest(read, parsed, { get: (name) => namespaces[name] }) !== undefined;
}

const NAMESPACE = { requestKind: { group: '', version: 'v1', kind: 'Namespace' } };
const IN_NAMESPACES = { requestResource: { group: '', version: 'v1', resource: 'namespaces' }, ...NAMESPACE };

describe('matchRequest', () => {
  for (const [rule, request, expected] of [
    [{}, {}, true],
    [{ resources: ['*'] }, {}, true],
    [{ resources: ['*/*'] }, {}, true],
    [{ resources: ['pods'] }, { subResource: 'status' }, false],
    [{ resources: ['pods/*'] }, { subResource: 'status' }, true],
    [{ resources: ['pods/*'] }, {}, true],
    [{ resources: ['*/status'] }, { subResource: 'status' }, true],
    [{ resources: ['*/status'] }, {}, false],
    [{ apiGroups: ['apps'] }, {}, false],
    [{ apiVersions: ['v2'] }, {}, false],
    [{ operations: ['UPDATE', 'DELETE'] }, {}, false],
    [{ resourceNames: ['other'] }, {}, false],
    [{ resourceNames: ['other', 'nginx'] }, {}, true],
    [{ scope: 'Cluster' }, {}, false],
    [{ scope: 'Namespaced' }, {}, true],
    [{ scope: 'Cluster', resources: ['namespaces'] }, IN_NAMESPACES, true],
    [{ scope: 'Namespaced', resources: ['namespaces'] }, IN_NAMESPACES, false],
  ] as const) {
    it(`is ${expected} for ${JSON.stringify(rule)} and ${JSON.stringify(request)}`, () => {
      const resourceRules = [{ ...RULE, ...rule }] as JsonObject[];
      assert.equal(matches({ resourceRules }, request as JsonObject), expected);
      const excludeResourceRules = resourceRules;
      assert.equal(matches({ excludeResourceRules }, request as JsonObject), !expected);
    });
  }

  it('matches the requested version with matchPolicy Equivalent', () => {
    const request = { requestResource: { group: 'old', version: 'v1beta1', resource: 'pods' } };
    const resourceRules = [{ ...RULE, apiGroups: [''], apiVersions: ['v1'] }];
    assert.equal(matches({ resourceRules }, request), true);
    assert.equal(matches({ resourceRules, matchPolicy: 'Exact' }, request), false);
  });

  it('matches labels of the object and of the old object', () => {
    const objectSelector = { matchLabels: { a: 'b' } };
    const labelled = { metadata: { labels: { a: 'b' } } };
    assert.equal(matches({ objectSelector }), false);
    assert.equal(matches({ objectSelector }, { object: labelled }), true);
    assert.equal(matches({ objectSelector }, { object: null, oldObject: labelled }), true);
  });

  it('reads namespace labels only when nothing else excludes the request', () => {
    const namespaceSelector = { matchLabels: { a: 'b' } };
    const labelled = { metadata: { labels: { a: 'b' } } };
    assert.equal(matches({ namespaceSelector }, {}, { default: labelled }), true);
    assert.equal(matches({ namespaceSelector }, {}, { default: {} }), false);
    assert.throws(() => matches({ namespaceSelector }), /namespaces "default" not found/);
    assert.equal(matches({ namespaceSelector, objectSelector: { matchLabels: { x: 'y' } } }), false);
    assert.equal(matches({ namespaceSelector }, { namespace: '' }), true, 'cluster-scoped');
    assert.equal(matches({ namespaceSelector }, { ...IN_NAMESPACES, object: labelled }), true, 'a namespace itself');
  });
});

describe('a label selector', () => {
  const labels = { app: 'web', tier: '' };
  for (const [requirement, text, expected] of [
    [{ key: 'app', operator: 'In', values: ['web', 'db'] }, 'app in (db,web)', true],
    [{ key: 'app', operator: 'NotIn', values: ['web'] }, 'app notin (web)', false],
    [{ key: 'none', operator: 'NotIn', values: ['web'] }, 'none notin (web)', true],
    [{ key: 'tier', operator: 'Exists' }, 'tier', true],
    [{ key: 'toString', operator: 'Exists' }, 'toString', false],
    [{ key: 'none', operator: 'DoesNotExist' }, '!none', true],
  ] as const) {
    it(`${text} is ${expected}`, () => {
      const problems: FieldProblem[] = [];
      const selector = readLabelSelector(
        readFields({ s: { matchExpressions: [requirement] } }, problems),
        's',
        problems,
      );
      assert.deepEqual(problems, []);
      assert.equal(selector?.toString(), text);
      assert.equal(selector?.matches(labels), expected);
    });
  }

  it('is validated', () => {
    const problems: FieldProblem[] = [];
    const matchExpressions = [
      { key: 'a', operator: 'Exists', values: ['b'] },
      { key: '', operator: 'in' },
    ];
    const s = { matchLabels: { 'a b': '-', c: 1 }, matchExpressions };
    readLabelSelector(readFields({ s }, problems), 's', problems);
    const texts = problems.map(problemText).join('\n');
    for (const expected of [
      /s\.matchLabels: Invalid value: "a b": name part must consist of/,
      /s\.matchLabels: Invalid value: "-": a valid label must be/,
      /s\.matchLabels\.c: expected text/,
      /s\.matchExpressions\[0\]\.values: Forbidden: may not be specified when/,
      /s\.matchExpressions\[1\]\.operator: Invalid value: "in": not a valid selector operator/,
      /s\.matchExpressions\[1\]\.key: Invalid value: "": name part must be non-empty/,
    ]) {
      assert.match(texts, expected);
    }
  });
});
