// Laws of governance, on random policies and orders of events.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../src/resources/index.ts';
import { until } from '../server/harness.ts';
import { GovernanceLab, withWrites } from './governance-lab.ts';

const GROUP = 'policy.open-cluster-management.io';
/** Each run starts a cluster, which takes some ten milliseconds. */
const RUNS = { numRuns: 15 };

const values = fc.dictionary(
  fc.constantFrom('a', 'b', 'c'),
  fc.constantFrom('', '1', '1.0', 'true', '{{`x`}}', 'ünï'),
  { maxKeys: 3 },
);
const objects = fc.record({
  name: fc.constantFrom('first', 'second', 'third'),
  complianceType: fc.constantFrom('musthave', 'mustonlyhave', 'mustnothave'),
  data: values,
  annotations: values,
});
const templates = fc.uniqueArray(objects, { selector: ({ name }) => name, minLength: 1, maxLength: 3 });
const live = fc.uniqueArray(fc.record({ name: fc.constantFrom('first', 'second', 'third'), data: values }), {
  selector: ({ name }) => name,
});

function configMap(name: string, data: JsonObject, annotations: JsonObject = {}): JsonObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default', annotations }, data };
}

function configuration(
  name: string,
  wanted: readonly { readonly complianceType: string; readonly object: JsonObject }[],
): JsonObject {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'ConfigurationPolicy',
    metadata: { name },
    spec: {
      remediationAction: 'enforce',
      'object-templates': wanted.map(({ complianceType, object }) => ({ complianceType, objectDefinition: object })),
    },
  };
}

const IN_CLUSTER_NAMESPACE = { namespace: 'local-cluster' };

/** A Policy with one template, which depends on Policies of the same namespace. */
function policy(name: string, dependsOn: readonly string[]): JsonObject {
  const dependencies = dependsOn.map((other) => ({
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    name: other,
    compliance: 'Compliant',
  }));
  const definition = configuration(name, [{ complianceType: 'musthave', object: configMap(name, {}) }]);
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace: 'policies' },
    spec: { disabled: false, dependencies, 'policy-templates': [{ objectDefinition: definition }] },
  };
}

/** A Policy whose template looks at the ConfigMap of its name, and has dependencies of its own. */
function informingPolicy(name: string, requirements: readonly JsonObject[]): JsonObject {
  const extraDependencies = requirements.map((one) => ({ apiVersion: `${GROUP}/v1`, compliance: 'Compliant', ...one }));
  const definition = configuration(name, [{ complianceType: 'musthave', object: configMap(name, {}) }]);
  const objectDefinition = {
    ...definition,
    spec: { ...(definition['spec'] as JsonObject), remediationAction: 'inform' },
  };
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace: 'policies' },
    spec: { disabled: false, 'policy-templates': [{ extraDependencies, objectDefinition }] },
  };
}

describe('an enforced policy', () => {
  it('is Compliant on the next look, and then writes nothing to its objects', async () => {
    await fc.assert(
      fc.asyncProperty(templates, live, async (wanted, before) => {
        const written: string[] = [];
        await using lab = await GovernanceLab.start({
          through: (cluster) =>
            withWrites(cluster, async (send, verb) => {
              written.push(verb);
              return await send();
            }),
        });
        await lab.namespace('local-cluster');
        await lab.apply(...before.map(({ name, data }) => configMap(name, data)));
        const { metadata, ...rest } = configuration(
          'law',
          wanted.map(({ name, complianceType, data, annotations }) => ({
            complianceType,
            object: configMap(name, data, annotations),
          })),
        );
        await lab.apply({ ...rest, metadata: { ...(metadata as JsonObject), ...IN_CLUSTER_NAMESPACE } });
        const reference = { kind: 'ConfigurationPolicy', name: 'local-cluster/law' };
        await lab.sees(reference, (object) => object?.status?.compliant === 'Compliant');
        await lab.stopControllers();
        written.length = 0;
        await lab.startControllers();
        // Any other change of the policy is a next look.
        await lab.merge(reference, { metadata: { annotations: { look: 'again' } }, spec: { severity: 'low' } });
        const looked = await lab.sees(
          reference,
          (object) => object?.status?.['lastEvaluatedGeneration'] === object?.metadata.generation,
        );
        assert.equal(looked.status?.compliant, 'Compliant');
        assert.deepEqual(
          written.filter((verb) => verb.endsWith('configmaps')),
          [],
        );
      }),
      RUNS,
    );
  });
});

describe('the final state', () => {
  it('does not depend on the order in which Policies are created', async () => {
    // A law for graphs without cycles: each Policy depends on ones before it.
    const graph = fc.tuple(
      ...[0, 1, 2, 3].map((index) => fc.subarray(Array.from({ length: index }, (_, other) => `p${other}`))),
    );
    const order = fc.shuffledSubarray(['p0', 'p1', 'p2', 'p3', 'blocked'], { minLength: 5 });
    await fc.assert(
      fc.asyncProperty(graph, order, async (dependencies, names) => {
        await using lab = await GovernanceLab.start();
        for (const name of names) {
          const index = Number(name.slice(1));
          await lab.apply(
            name === 'blocked' ? policy('blocked', ['p3', 'missing']) : policy(name, dependencies[index] ?? []),
          );
        }
        for (const name of names) {
          await lab.reaches(`policies/${name}`, name === 'blocked' ? 'Pending' : 'Compliant');
        }
        await until(
          async () =>
            (await lab.list('ConfigMap')).filter(({ metadata }) => metadata.namespace === 'default').length === 4,
        );
      }),
      RUNS,
    );
  });

  it('does not depend on the order of any events: policies, a PolicySet, objects that come and go', async () => {
    const numbers = [0, 1, 2, 3];
    /** Each policy depends on ones before it: as a whole, by one template, or by a PolicySet of two. */
    const scene = fc.record({
      edges: fc.tuple(
        ...numbers.map((index) =>
          fc.uniqueArray(
            fc.record({ to: fc.nat(Math.max(index - 1, 0)), kind: fc.constantFrom('Policy', 'ConfigurationPolicy') }),
            { selector: ({ to }) => to, maxLength: index },
          ),
        ),
      ),
      dependsOnSet: fc.boolean(),
      stays: fc.tuple(...numbers.map(() => fc.boolean())),
    });
    const events = [
      ...numbers.map((index) => `policy ${index}`),
      ...numbers.flatMap((index) => [`object ${index}`, `gone ${index}`]),
      'set',
    ];
    const order = fc.shuffledSubarray(events, { minLength: events.length });
    await fc.assert(
      fc.asyncProperty(scene, order, async ({ edges, dependsOnSet, stays }, shuffled) => {
        await using lab = await GovernanceLab.start();
        const isLast = (index: number): boolean => dependsOnSet && index === numbers.length - 1;
        const requirementsOf = (index: number): readonly JsonObject[] => [
          ...(edges[index] ?? []).map(({ to, kind }) => ({ kind, name: `p${to}` })),
          ...(isLast(index) ? [{ apiVersion: `${GROUP}/v1beta1`, kind: 'PolicySet', name: 'both' }] : []),
        ];
        const apply: Readonly<Record<string, (index: number) => Promise<void>>> = {
          policy: (index) => lab.apply(informingPolicy(`p${index}`, requirementsOf(index))),
          object: (index) => lab.apply(configMap(`p${index}`, {})),
          gone: (index) => lab.delete({ kind: 'ConfigMap', name: `default/p${index}` }),
          set: () =>
            lab.apply({
              apiVersion: `${GROUP}/v1beta1`,
              kind: 'PolicySet',
              metadata: { name: 'both', namespace: 'policies' },
              spec: { policies: ['p0', 'p1'] },
            }),
        };
        const there = new Set<number>();
        for (const event of shuffled) {
          const [kind = '', number = ''] = event.split(' ');
          const index = Number(number);
          const isPossible = kind !== 'gone' || (there.has(index) && stays[index] === false);
          await (isPossible ? apply[kind]?.(index) : undefined);
          if (kind === 'object') {
            there.add(index);
          } else if (kind === 'gone' && isPossible) {
            there.delete(index);
          }
        }
        const states: string[] = [];
        for (const index of numbers) {
          const on = [...(edges[index] ?? []).map(({ to }) => to), ...(isLast(index) ? [0, 1] : [])];
          const isMet = on.every((to) => states[to] === 'Compliant');
          states.push(isMet ? (there.has(index) ? 'Compliant' : 'NonCompliant') : 'Pending');
        }
        let last: readonly unknown[] = [];
        await until(
          async () => {
            last = await Promise.all(
              numbers.map(async (index) => (await lab.policy(`policies/p${index}`))?.status?.compliant),
            );
            return last.every((state, index) => state === states[index]);
          },
          () => `${JSON.stringify(states)} after ${shuffled.join(', ')}, last ${JSON.stringify(last)}`,
        );
      }),
      RUNS,
    );
  });
});
