// A bucket gives the verdicts that API servers would get from one webhook per policy. This file contains a second,
// plain implementation of their rules.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Dice } from '../testing/dice.ts';
import { applyJsonPatch, textOf } from '../../resources/index.ts';
import type { MatchRule, MatchSelector, PolicyMatch } from '../../resources/index.ts';
import { evaluate, readReview } from '../evaluate.ts';
import type { LoadedPolicy } from '../loaded-policy.ts';
import type { Verdict } from '../verdict/verdict.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { TestTable } from '../testing/bucket-table.ts';
import type { TestPolicy } from '../testing/bucket-table.ts';
import { bytes, podReview } from '../testing/reviews.ts';

const ROUNDS = 300;

const NAMESPACES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  red: { 'kubernetes.io/metadata.name': 'red', team: 'red' },
  blue: { 'kubernetes.io/metadata.name': 'blue', team: 'blue' },
  portcullis: { 'kubernetes.io/metadata.name': 'portcullis' },
};
const SELECTORS: readonly MatchSelector[] = [
  {},
  {},
  {},
  { matchLabels: { 'kubernetes.io/metadata.name': 'red' } },
  { matchLabels: { team: 'blue' } },
  { matchExpressions: [{ key: 'team', operator: 'In', values: ['red', 'blue'] }] },
  { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['red'] }] },
  { matchExpressions: [{ key: 'team', operator: 'Exists' }] },
  { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] },
];

interface Condition {
  readonly expression: string;
  /** Undefined when the condition fails. */
  readonly holds: (request: JsonObject) => boolean | undefined;
}

const CONDITIONS: readonly Condition[] = [
  { expression: 'request.operation == "CREATE"', holds: ({ operation }) => operation === 'CREATE' },
  { expression: 'object != null', holds: ({ object }) => object !== null },
  { expression: 'has(object.metadata)', holds: ({ object }) => object !== null && isMarked(object) },
  { expression: 'request.resource.resource.startsWith("p") || oldObject.kind == "Pod"', holds: namesPod },
];

function isMarked(object: unknown): boolean {
  return Object.hasOwn(object as object, 'metadata');
}

function namesPod({ resource, oldObject }: JsonObject): boolean | undefined {
  if (textOf((resource as JsonObject).resource).startsWith('p')) {
    return true;
  }
  return oldObject === null ? undefined : (oldObject as JsonObject).kind === 'Pod';
}

function randomRule(dice: Dice): MatchRule {
  return {
    operations: dice.below(2) === 0 ? ['*'] : dice.some(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
    apiGroups: dice.below(2) === 0 ? ['*'] : dice.some(['', 'apps']),
    apiVersions: dice.below(2) === 0 ? ['*'] : dice.some(['v1', 'v2']),
    resources: dice.some(['pods', 'pods/exec', 'pods/*', '*', '*', '*/*', '*/*', 'namespaces', 'nodes']),
    scope: dice.one(['*', '*', 'Cluster', 'Namespaced']),
  };
}

function randomSpec(dice: Dice): JsonObject {
  return {
    rules: dice.some([1, 2]).map(() => randomRule(dice)) as unknown as JsonValue,
    namespaceSelector: dice.one(SELECTORS) as JsonObject,
    objectSelector: dice.one(SELECTORS) as JsonObject,
    failurePolicy: dice.one(['Fail', 'Ignore']),
    matchPolicy: dice.one(['Exact', 'Equivalent']),
    ...(dice.below(3) === 0
      ? { matchConditions: dice.some(CONDITIONS).map(({ expression }, index) => ({ name: `c${index}`, expression })) }
      : {}),
  };
}

function randomRequest(dice: Dice): JsonObject {
  const operation = dice.one(['CREATE', 'CREATE', 'UPDATE', 'DELETE', 'CONNECT']);
  const resource = dice.one(['pods', 'pods', 'namespaces', 'nodes']);
  const namespace = resource === 'nodes' ? null : dice.one(['red', 'blue', 'portcullis', 'unknown']);
  const object = (): JsonValue =>
    dice.below(5) === 0
      ? { kind: 'Options' }
      : {
          kind: 'Pod',
          metadata: { name: 'one', ...dice.one([{}, { labels: {} }, { labels: { team: dice.one(['red', 'blue']) } }]) },
        };
  const id = (): JsonObject => ({ group: dice.one(['', 'apps']), version: dice.one(['v1', 'v1', 'v2']), resource });
  const requestResource = id();
  return {
    operation,
    resource: dice.below(4) === 0 ? id() : requestResource,
    requestResource,
    namespace,
    name: resource === 'namespaces' ? namespace : 'one',
    ...(resource === 'pods' && dice.below(3) === 0 ? { subResource: 'exec', requestSubResource: 'exec' } : {}),
    object: operation === 'DELETE' ? null : object(),
    oldObject: operation === 'UPDATE' || operation === 'DELETE' ? object() : null,
  };
}

function isSelected(selector: MatchSelector, labels: Readonly<Record<string, unknown>>): boolean {
  const expressions = (selector.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const value = labels[key];
    const isIn = value !== undefined && values.includes(textOf(value));
    return { In: isIn, NotIn: !isIn, Exists: value !== undefined, DoesNotExist: value === undefined }[operator];
  });
  return expressions && Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
}

function isEmpty({ matchLabels = {}, matchExpressions = [] }: MatchSelector): boolean {
  return Object.keys(matchLabels).length + matchExpressions.length === 0;
}

function labelsOf(object: unknown): Record<string, unknown> | undefined {
  const metadata = (object as JsonObject | null)?.metadata as JsonObject | undefined;
  return metadata && ((metadata.labels ?? {}) as Record<string, unknown>);
}

/** Whether an API server would call a webhook with these settings; `error`: it rejects the request, or would. */
function matchOf(match: PolicyMatch, request: JsonObject): 'yes' | 'no' | 'error' {
  const { group, version, resource } = request.resource as Record<string, string>;
  const requested = (request.requestResource as JsonObject).resource;
  const namespace = textOf(request.namespace);
  const sub = request.subResource ?? '';
  const isNamespaces = resource === 'namespaces' && group === '' && version === 'v1';
  const scope = namespace === '' || isNamespaces ? 'Cluster' : 'Namespaced';
  const isRuled = match.rules.some(
    (rule) =>
      ['*', scope].includes(rule.scope) &&
      rule.operations.some((one) => ['*', request.operation].includes(one)) &&
      rule.apiGroups.some((one) => ['*', group].includes(one)) &&
      rule.apiVersions.some((one) => ['*', version].includes(one)) &&
      rule.resources.some((one) => {
        const [name = '', ruledSub = ''] = one.split('/');
        return ['*', resource].includes(name) && ['*', sub].includes(ruledSub);
      }),
  );
  const isElsewhere = match.namespace !== undefined && (scope === 'Cluster' || namespace !== match.namespace);
  if (!isRuled || isElsewhere) {
    return 'no';
  }
  let isUnknown = false;
  if (!isEmpty(match.namespaceSelector) && (namespace !== '' || requested === 'namespaces')) {
    const isWritten =
      requested === 'namespaces' && sub === '' && ['CREATE', 'UPDATE'].includes(textOf(request.operation));
    const labels = isWritten ? (labelsOf(request.object) ?? {}) : NAMESPACES[namespace];
    const named = { 'kubernetes.io/metadata.name': namespace };
    // The name of a namespace is known even if nothing else is.
    const { matchLabels = {}, matchExpressions = [] } = match.namespaceSelector;
    const needsMore = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)].some(
      (key) => key === 'team',
    );
    isUnknown = labels === undefined && needsMore;
    if (!isUnknown && !isSelected(match.namespaceSelector, labels ?? named)) {
      return 'no';
    }
  }
  const objects = [request.object, request.oldObject].map(labelsOf);
  if (!isEmpty(match.objectSelector) && !objects.some((labels) => labels && isSelected(match.objectSelector, labels))) {
    return 'no';
  }
  if (isUnknown) {
    return 'error';
  }
  const results = match.matchConditions.map(({ expression }) =>
    CONDITIONS.find((one) => one.expression === expression)?.holds(request),
  );
  return results.includes(false) ? 'no' : results.includes(undefined) ? 'error' : 'yes';
}

function contextOf(request: JsonObject, added: readonly Added[]): string {
  return JSON.stringify({ request, matches: added.map(({ match }) => match) });
}

interface Added {
  readonly id: string;
  readonly match: PolicyMatch;
}

function verdictOf(policy: LoadedPolicy, request: JsonObject): Verdict {
  return evaluate(policy, readReview('validate', bytes(podReview(request))), { route: 'validate' }).verdict;
}

function randomPolicy(dice: Dice, index: number, answer: TestPolicy['answer'], spec: JsonObject = {}): TestPolicy {
  const own = { ...randomSpec(dice), ...spec };
  return {
    name: `p${index}`,
    ...(dice.below(4) === 0 && spec.mutating !== true ? { namespace: dice.one(['red', 'blue']) } : {}),
    spec: own,
    ...(answer === undefined ? {} : { answer }),
  };
}

function tableOf(): TestTable {
  const table = new TestTable();
  for (const [name, labels] of Object.entries(NAMESPACES)) {
    table.namespaces.set(name, labels);
  }
  return table;
}

test('validating: buckets evaluate and deny as one webhook per policy would', () => {
  const dice = new Dice(2_026);
  const seen = { yes: 0, no: 0, error: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const table = tableOf();
    const added = new Map<string, Added>();
    for (let index = 0; index < 6; index++) {
      const isDenying = dice.below(3) === 0;
      const answer = isDenying ? () => ({ accepted: false, message: 'no' }) : () => ({ accepted: true });
      const one = table.add(randomPolicy(dice, index, answer));
      added.set(one.id, one);
    }
    for (let requests = 0; requests < 4; requests++) {
      const request = randomRequest(dice);
      const isSame = (a: unknown, b: unknown): void =>
        isDeepStrictEqual(a, b) ? undefined : assert.deepEqual(a, b, contextOf(request, [...added.values()]));
      const expected = new Map<string, boolean>();
      for (const { id, match } of added.values()) {
        const result = matchOf(match, request);
        seen[result]++;
        const policy = table.table.get(id) ?? assert.fail();
        if (result === 'yes') {
          expected.set(id, verdictOf(policy, request).allowed);
        } else if (result === 'error' && match.failurePolicy === 'Fail') {
          expected.set(id, false);
        }
      }
      const got = new Map<string, boolean>();
      let isAllowed = true;
      for (const bucket of new Set([...added.values()].map(({ match }) => match.bucket))) {
        const { verdict, observations } = table.evaluate(bucket, podReview(request));
        isAllowed &&= verdict.allowed;
        for (const { policy, accepted } of observations) {
          const { match } = added.get(policy) ?? assert.fail();
          // A policy whose failures are ignored is observed also when its match fails.
          if (matchOf(match, request) === 'yes' || match.failurePolicy === 'Fail') {
            got.set(policy, accepted);
          }
        }
      }
      isSame(Object.fromEntries(got), Object.fromEntries(expected));
      isSame(isAllowed, [...expected.values()].every(Boolean));
    }
  }
  assert.ok(
    Object.values(seen).every((count) => count > 60),
    JSON.stringify(seen),
  );
});

/** A policy that sets a label, depending on another label. */
function randomMutation(dice: Dice): (request: JsonObject) => unknown {
  const [needed, set] = [dice.one(['', 'a', 'b', 'team']), dice.one(['a', 'b', 'c', 'team'])];
  const value = dice.one(['red', 'blue']);
  const isDenying = dice.below(8) === 0;
  return ({ object }) => {
    const metadata = (object as JsonObject | undefined)?.metadata as JsonObject | undefined;
    const labels = (metadata?.labels ?? {}) as JsonObject;
    if (metadata === undefined || (needed !== '' && !Object.hasOwn(labels, needed))) {
      return { accepted: true };
    }
    const mutated = { ...(object as JsonObject), metadata: { ...metadata, labels: { ...labels, [set]: value } } };
    return isDenying && labels[set] === value ? { accepted: false } : { accepted: true, mutated_object: mutated };
  };
}

/** Calls one webhook after the other, and reinvokes those for which the object changed. Undefined: rejected. */
function mutateSeparately(table: TestTable, added: readonly Added[], request: JsonObject): JsonValue | undefined {
  let object = request.object as JsonValue;
  let waiting: string[] = [];
  const again = new Set<string>();
  for (const isSecond of [false, true]) {
    for (const { id, match } of added) {
      const current = { ...request, object };
      const result = isSecond && !again.has(id) ? 'no' : matchOf(match, current);
      if (result === 'no' || (result === 'error' && match.failurePolicy === 'Ignore')) {
        continue;
      }
      const policy = table.table.get(id) ?? assert.fail();
      const verdict = verdictOf(policy, current);
      if (result === 'error' || !verdict.allowed) {
        return undefined;
      }
      if (verdict.patch !== undefined) {
        const operations = JSON.parse(verdict.patch) as JsonValue[];
        object = applyJsonPatch(object as JsonObject, operations);
        waiting.forEach((one) => again.add(one));
        waiting = [];
      }
      waiting.push(id);
    }
  }
  return object;
}

test('mutating: a bucket changes objects as one webhook per policy would', () => {
  const dice = new Dice(7_102);
  let changed = 0;
  let refused = 0;
  for (let round = 0; round < 3 * ROUNDS; round++) {
    const table = tableOf();
    const settings = { mutating: true, failurePolicy: dice.one(['Fail', 'Ignore']), matchPolicy: 'Exact' };
    const added = Array.from({ length: 5 }, (_, index) => {
      const rules = [{ ...randomRule(dice), operations: ['*'], apiGroups: ['*'], apiVersions: ['*'] }];
      return table.add(
        randomPolicy(dice, index, randomMutation(dice), { ...settings, rules: rules as unknown as JsonValue }),
      );
    });
    const bucket = added[0]?.match.bucket ?? '';
    const request = randomRequest(dice);
    const context = contextOf(request, added);
    const expected = mutateSeparately(table, added, request);
    const { verdict } = table.evaluate(bucket, podReview(request));
    assert.equal(verdict.allowed, expected !== undefined, context);
    if (verdict.allowed) {
      const operations = verdict.patch ?? '[]';
      const object =
        operations === '[]'
          ? request.object
          : applyJsonPatch(request.object as JsonObject, JSON.parse(operations) as JsonValue[]);
      assert.deepEqual(object, expected, context);
      changed += verdict.patch === undefined ? 0 : 1;
    } else {
      refused++;
    }
  }
  assert.ok(changed > 60 && refused > 20, JSON.stringify({ changed, refused }));
});
