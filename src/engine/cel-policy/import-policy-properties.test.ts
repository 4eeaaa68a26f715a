// Laws of conversions between Kubernetes' own admission policies and ClusterAdmissionPolicies.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { MatchRule, MatchSelector } from '../../resources/index.ts';
import { textOf, valueAt } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { podReview } from '../testing/reviews.ts';
import { admissionRequest } from './admission-request.ts';
import { unmatchedManifests } from './evaluate-manifests.ts';
import { exportPolicy } from './export-policy.ts';
import { importPolicies } from './import-policy.ts';
import { loadManifests } from './manifests.ts';

const GROUP = 'admissionregistration.k8s.io/v1';
const NAMESPACES: readonly JsonObject[] = [{}, { team: 'shop' }, { team: 'bank', tier: 'gold' }].map(
  (labels, index) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: `namespace-${index}`, labels },
  }),
);

const some = <T>(...values: T[]): fc.Arbitrary<T[]> => fc.subarray(values, { minLength: 1 });
const labels = fc.record({ team: fc.constantFrom('shop', 'bank'), tier: fc.constant('gold') }, { requiredKeys: [] });
const selector = fc.record(
  {
    matchLabels: labels,
    matchExpressions: fc.array(
      fc.oneof(
        fc.record({ key: fc.constantFrom('team', 'tier'), operator: fc.constantFrom('Exists', 'DoesNotExist') }),
        fc.record({ key: fc.constant('team'), operator: fc.constantFrom('In', 'NotIn'), values: some('shop', 'bank') }),
      ),
      { maxLength: 2 },
    ),
  },
  { requiredKeys: [] },
);
const rule = fc.record(
  {
    apiGroups: fc.constantFrom([''], ['*']),
    apiVersions: fc.constantFrom(['v1'], ['*']),
    resources: fc.oneof(some('pods', 'services'), fc.constant(['*'])),
    operations: fc.oneof(some('CREATE', 'UPDATE', 'DELETE'), fc.constant(['*'])),
    scope: fc.constantFrom('*', 'Namespaced', 'Cluster'),
    resourceNames: fc.constantFrom([], ['nginx'], ['other']),
  },
  { requiredKeys: ['apiGroups', 'apiVersions', 'resources', 'operations'] },
);
const match = (minLength: number): fc.Arbitrary<object> =>
  fc.record(
    {
      resourceRules: fc.array(rule, { minLength, maxLength: 2 }),
      excludeResourceRules: fc.array(rule, { maxLength: 1 }),
      namespaceSelector: selector,
      objectSelector: selector,
      matchPolicy: fc.constantFrom('Exact', 'Equivalent'),
    },
    { requiredKeys: minLength > 0 ? ['resourceRules'] : [] },
  );

/** A policy with its binding. */
const manifests = fc
  .record({ constraints: match(1), resources: match(0), failurePolicy: fc.constantFrom('Fail', 'Ignore') })
  .map(({ constraints, resources, failurePolicy }): JsonObject[] => [
    {
      apiVersion: GROUP,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'one' },
      spec: { failurePolicy, matchConstraints: constraints as JsonObject, validations: [{ expression: 'false' }] },
    },
    {
      apiVersion: GROUP,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'one' },
      spec: { policyName: 'one', validationActions: ['Deny'], matchResources: resources as JsonObject },
    },
  ]);

const request = fc
  .record({
    namespace: fc.constantFrom(...NAMESPACES.map((one) => textOf(valueAt(one, 'metadata', 'name')))),
    resource: fc.constantFrom('pods', 'services'),
    operation: fc.constantFrom('CREATE', 'UPDATE', 'DELETE'),
    labels,
    oldLabels: labels,
  })
  .map(({ namespace, resource, operation, labels: after, oldLabels: before }) => {
    const object = (set: object): JsonObject => ({ metadata: { name: 'nginx', namespace, labels: set as JsonObject } });
    return podReview({
      operation,
      namespace,
      resource: { group: '', version: 'v1', resource },
      requestResource: { group: '', version: 'v1', resource },
      object: operation === 'DELETE' ? null : object(after),
      oldObject: operation === 'CREATE' ? null : object(before),
    })['request'] as JsonObject;
  });

/** The manifests of the API server for a policy of ours, as `portcullis export` makes them. */
function exported(policy: JsonObject): readonly JsonObject[] {
  const at = (key: string): JsonValue | undefined => valueAt(policy, 'spec', key);
  const selectorAt = (key: string): object => (at(key) === undefined ? {} : { [key]: at(key) as MatchSelector });
  const rules = (at('rules') as JsonObject[]).map((one) => ({ scope: '*', ...one }) as unknown as MatchRule);
  const { manifests: made, problems } = exportPolicy(at('settings'), {
    name: 'one',
    requests: {
      rules,
      matchPolicy: at('matchPolicy') === 'Exact' ? 'Exact' : 'Equivalent',
      failurePolicy: at('failurePolicy') === 'Ignore' ? 'Ignore' : 'Fail',
      matchConditions: [],
      ...selectorAt('namespaceSelector'),
      ...selectorAt('objectSelector'),
    },
  });
  assert.deepEqual(problems, []);
  return made;
}

describe('importPolicies', () => {
  it('keeps the requests that a policy and its binding match', () => {
    fc.assert(
      fc.property(manifests, fc.array(request, { minLength: 1, maxLength: 5 }), (original, requests) => {
        const { policies, problems } = importPolicies(original);
        // Names of objects in both cannot be expressed.
        fc.pre(problems.length === 0);
        const [before, after] = [original, exported(policies[0] ?? {})].map((some) =>
          loadManifests([...some, ...NAMESPACES]),
        );
        for (const one of requests.map(admissionRequest)) {
          const isMatch = (loaded: Parameters<typeof unmatchedManifests>[0]): boolean =>
            unmatchedManifests(loaded, one) === undefined;
          assert.equal(after && isMatch(after), before && isMatch(before));
        }
      }),
      { numRuns: 100 },
    );
  });

  it('is undone by exportPolicy, and undoes it', () => {
    fc.assert(
      fc.property(manifests, (original) => {
        const { policies, problems } = importPolicies(original);
        fc.pre(problems.length === 0);
        const again = importPolicies(exported(policies[0] ?? {}));
        // Generated objects may have no prototype.
        assert.deepEqual(structuredClone(again), structuredClone({ policies, problems: [], notes: [] }));
      }),
      { numRuns: 100 },
    );
  });
});
