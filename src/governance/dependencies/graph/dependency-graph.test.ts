import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type KubernetesObject, GOVERNANCE_GROUP } from '../../../resources/index.ts';
import { CLUSTER, dependency, lookupIn, policyObject, rootPolicy, template } from '../testing/dependency-scene.ts';
import { unmetDependency } from '../unmet-dependencies.ts';
import { DependencyGraph } from './dependency-graph.ts';
import { graphPolicy } from './graph-policy.ts';

const SETS: Readonly<Record<string, readonly string[]>> = { 'default/all': ['a', 'b'] };
const graphOf = (...policies: readonly KubernetesObject[]): DependencyGraph =>
  new DependencyGraph(
    policies.map((policy) =>
      graphPolicy(policy, {
        clusterNamespace: CLUSTER,
        policiesOfSet: ({ namespace, name }) => SETS[`${namespace}/${name}`],
        isPlaced: ({ metadata }) => metadata.labels?.['placed'] !== 'no',
      }),
    ),
    CLUSTER,
  );
const findings = (graph: DependencyGraph, name: string): readonly string[] =>
  graph.findingsOf({ namespace: 'default', name }).map(({ message }) => message);
const config = (name: string, compliance = 'Compliant') =>
  dependency(name, compliance, { kind: 'ConfigurationPolicy' });

describe('findings about dependencies', () => {
  it('are none for policies in order', () => {
    const graph = graphOf(
      rootPolicy('a', []),
      rootPolicy('b', [dependency('a')]),
      rootPolicy('c', [dependency('default.b')]),
    );
    assert.deepEqual(
      ['a', 'b', 'c'].map((name) => findings(graph, name)),
      [[], [], []],
    );
  });

  it('name the cycle from each of its policies', () => {
    const graph = graphOf(
      rootPolicy('a', [dependency('b')]),
      rootPolicy('b', [dependency('c')]),
      rootPolicy('c', [dependency('a')]),
      rootPolicy('d', [dependency('a')]),
    );
    assert.deepEqual(findings(graph, 'a'), [
      'dependencies form a cycle: default/a → default/b → default/c → default/a',
    ]);
    assert.deepEqual(findings(graph, 'c'), [
      'dependencies form a cycle: default/c → default/a → default/b → default/c',
    ]);
    assert.deepEqual(findings(graph, 'd'), [], 'it waits for the cycle, and is not part of it');
  });

  it('name a policy that depends on itself, also through a PolicySet', () => {
    const graph = graphOf(
      rootPolicy('a', [dependency('all', 'Compliant', { kind: 'PolicySet' })]),
      rootPolicy('b', []),
    );
    assert.deepEqual(findings(graph, 'a'), ['policy default/a depends on itself']);
  });

  it('name the templates of a cycle within one policy', () => {
    const graph = graphOf(rootPolicy('a', [], [template('one', [config('two')]), template('two', [config('one')])]));
    assert.deepEqual(findings(graph, 'a'), [
      'dependencies form a cycle: default/a (ConfigurationPolicy one) → default/a (ConfigurationPolicy two) → default/a (ConfigurationPolicy one)',
      'dependencies form a cycle: default/a (ConfigurationPolicy two) → default/a (ConfigurationPolicy one) → default/a (ConfigurationPolicy two)',
    ]);
  });

  it('name a cycle through templates of two policies', () => {
    const graph = graphOf(
      rootPolicy('a', [], [template('one', [config('b-config')])]),
      rootPolicy('b', [dependency('a')]),
    );
    assert.deepEqual(findings(graph, 'a'), ['dependencies form a cycle: default/a → default/b → default/a']);
  });

  it('do not call an order of templates a cycle', () => {
    const graph = graphOf(rootPolicy('a', [], [template('one'), template('two', [config('one')])]));
    assert.deepEqual(findings(graph, 'a'), []);
  });

  it('know what does not block: ignorePending, a required Pending, and a violation of another template', () => {
    const self = (compliance: string, ignorePending = false) =>
      template('late', [dependency('a', compliance)], ignorePending);
    const found = (...templates: readonly unknown[]) => findings(graphOf(rootPolicy('a', [], templates)), 'a');
    assert.deepEqual(found(template('one'), self('Compliant', true)), []);
    assert.deepEqual(found(template('one'), self('Pending')), []);
    assert.deepEqual(found(template('one'), self('NonCompliant')), []);
    assert.deepEqual(found(self('NonCompliant')), ['policy default/a depends on itself'], 'no other can violate');
    assert.deepEqual(found(template('one'), self('Compliant')), ['policy default/a depends on itself']);
  });

  it('name what is found nowhere, or elsewhere', () => {
    const elsewhere = rootPolicy('far', []);
    const graph = graphOf(
      rootPolicy('a', [
        dependency('gone'),
        dependency('far'),
        dependency('none', 'Compliant', { kind: 'PolicySet' }),
        config('lost'),
        dependency('x', 'Compliant', { apiVersion: 'v1', kind: 'Namespace' }),
      ]),
      { ...elsewhere, metadata: { ...elsewhere.metadata, labels: { placed: 'no' } } },
    );
    assert.deepEqual(findings(graph, 'a'), [
      'Policy default.gone does not exist',
      'Policy default.far is not placed on this cluster',
      'PolicySet none does not exist',
      'no policy of this cluster contains ConfigurationPolicy lost',
    ]);
  });

  it('report conflicts and too many dependencies', () => {
    const many = Array.from({ length: 1_001 }, (_, index) => dependency(`p${index}`));
    const graph = graphOf(rootPolicy('a', [dependency('b'), dependency('b', 'Pending')]), rootPolicy('b', many));
    assert.deepEqual(findings(graph, 'a'), ['dependency on default.b has conflicting compliance states']);
    assert.match(findings(graph, 'b')[0] ?? '', /^expected at most 500 dependencies/u);
    assert.deepEqual(findings(graph, 'nowhere'), []);
  });

  it('takes malformed policies', () => {
    const graph = graphOf({
      ...rootPolicy('a', []),
      spec: { dependencies: [null], 'policy-templates': [7, {}, null] },
    });
    assert.equal(graph.policies[0]?.templates.length, 1);
    assert.deepEqual(findings(graph, 'a'), []);
  });
});

describe('unmet dependencies by the graph', () => {
  const STATES = ['Compliant', 'NonCompliant', 'Pending', undefined] as const;
  const scene = fc.integer({ min: 1, max: 6 }).chain((count) =>
    fc.record({
      edges: fc.array(
        fc.tuple(fc.nat(count - 1), fc.nat(count), fc.constantFrom('Compliant', 'NonCompliant', 'Pending')),
        {
          maxLength: 12,
        },
      ),
      states: fc.array(fc.constantFrom(...STATES), { minLength: count, maxLength: count }),
    }),
  );

  it('equal a direct evaluation, and are cycles only where policies wait for each other', () => {
    fc.assert(
      fc.property(scene, ({ edges, states }) => {
        const roots = states.map((_, from) => {
          const own = edges.filter(([source]) => source === from);
          const unique = new Map(own.map(([, to, compliance]) => [to, dependency(`p${to}`, compliance)]));
          return rootPolicy(`p${from}`, [...unique.values()]);
        });
        const copies = states.flatMap((compliant, index) =>
          compliant === undefined ? [] : [policyObject(`default.p${index}`, { compliant })],
        );
        const graph = graphOf(...roots);
        const lookup = lookupIn(...copies);
        /** All policies that must be applied before this one is. */
        const before = (from: number): ReadonlySet<number> => {
          const seen = new Set<number>();
          const open = [from];
          for (const next of open) {
            for (const { compliance, name } of graph.policies[next]?.templates[0]?.requirements ?? []) {
              const to = Number(name.replace('default.p', ''));
              if (compliance !== 'Pending' && to < states.length && !seen.has(to)) {
                seen.add(to);
                open.push(to);
              }
            }
          }
          return seen;
        };
        graph.policies.forEach((policy, index) => {
          const [only] = policy.templates;
          assert.ok(only);
          const expected = only.requirements.flatMap((requirement) => {
            const unmet = unmetDependency(requirement, lookup(requirement));
            const target = Number(requirement.name.replace('default.p', ''));
            const isCycle =
              unmet !== undefined &&
              requirement.compliance !== 'Pending' &&
              (target === index || before(target).has(index));
            return unmet === undefined ? [] : [isCycle ? { ...unmet, reason: 'Cycle' } : unmet];
          });
          const found = graph.unmetOf(only, lookup);
          const way = graph.cycleOf(only)?.join(' → ');
          assert.ok(found.every(({ reason, detail }) => reason !== 'Cycle' || detail === way));
          assert.deepEqual(
            found.map((one) => ({ ...one, detail: '' })),
            expected.map((one) => ({ ...one, detail: '' })),
          );
        });
      }),
      { numRuns: 300 },
    );
  });

  it('tell a policy that is placed elsewhere from one that does not exist', () => {
    const far = rootPolicy('far', []);
    const graph = graphOf(rootPolicy('a', [dependency('far'), dependency('gone')]), {
      ...far,
      spec: { ...(far['spec'] as object), disabled: true },
    });
    assert.deepEqual(
      graph.unmetOf(graph.policies[0]!.templates[0]!, lookupIn()).map(({ reason }) => reason),
      ['NotPlaced', 'NotFound'],
    );
  });

  it('refuses a graph that is too large', () => {
    const requirements = Array.from({ length: 1_000 }, (_, index) => dependency(`p${index}`));
    const one = {
      apiVersion: `${GOVERNANCE_GROUP}/v1`,
      kind: 'ConfigurationPolicy',
      name: '',
      ignorePending: false,
      requirements,
    };
    const templates = Array.from({ length: 501 }, () => ({ ...one }));
    const policy = { namespace: 'default', name: 'a', isPlaced: true, problems: [], templates };
    assert.throws(() => new DependencyGraph([policy], CLUSTER), { code: 'graph-too-large' });
  });
});
