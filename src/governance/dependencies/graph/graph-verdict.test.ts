// The graph's verdict on random policies, with dependencies of templates and PolicySets, against its definition.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { Dependency } from '../dependency.ts';
import { CLUSTER, dependency, lookupIn, policyObject, rootPolicy, template } from '../testing/dependency-scene.ts';
import { DependencyGraph } from './dependency-graph.ts';
import { graphPolicy } from './graph-policy.ts';

const REQUIRED = ['Compliant', 'NonCompliant', 'Pending'] as const;
type State = (typeof REQUIRED)[number];

/** Numbers that point to policies, templates and sets of the scene, whatever their size. */
type Target = readonly [kind: 'policy' | 'template' | 'set', number: number];

interface SceneTemplate {
  readonly name: string;
  readonly ignoresPending: boolean;
  readonly required: State;
  readonly actual: State | undefined;
  readonly dependsOn: readonly Target[];
}

interface ScenePolicy {
  readonly required: State;
  readonly actual: State | undefined;
  readonly dependsOn: readonly Target[];
  readonly templates: readonly SceneTemplate[];
}

interface Scene {
  readonly policies: readonly ScenePolicy[];
  /** The state that the policies of a set must have: of those named, the ones that are required to have it are members. */
  readonly sets: readonly { readonly required: State; readonly names: readonly number[] }[];
}

const targets: fc.Arbitrary<readonly Target[]> = fc.array(
  fc.tuple(fc.constantFrom('policy', 'template', 'set'), fc.nat(9)),
  {
    maxLength: 2,
  },
);
const required = fc.constantFrom(...REQUIRED);
const actual = fc.constantFrom(...REQUIRED, undefined);
const scenes: fc.Arbitrary<Scene> = fc.record({
  policies: fc
    .array(
      fc.record({
        required,
        actual,
        dependsOn: targets,
        templates: fc.array(fc.record({ ignoresPending: fc.boolean(), required, actual, dependsOn: targets }), {
          minLength: 1,
          maxLength: 3,
        }),
      }),
      { minLength: 1, maxLength: 5 },
    )
    .map((policies) =>
      policies.map((policy, index) => ({
        ...policy,
        templates: policy.templates.map((one, position) => ({ ...one, name: `p${index}t${position}` })),
      })),
    ),
  sets: fc.array(fc.record({ required, names: fc.array(fc.nat(9), { maxLength: 3 }) }), { minLength: 1, maxLength: 2 }),
});

const config = (name: string, state: string): Dependency => dependency(name, state, { kind: 'ConfigurationPolicy' });

/** Where an edge leads: the object, the state that it must have, and the state that it has. */
interface Edge {
  readonly id: string;
  readonly required: State;
  readonly actual: State | undefined;
  /** What must come true first, which is nothing for Pending. */
  readonly goal: string | undefined;
}

/** Evaluates a scene by the definition: what can come true at all, found by trying until nothing changes. */
class Definition {
  readonly #scene: Scene;
  readonly #templates: readonly SceneTemplate[];
  readonly #needs = new Map<string, { readonly needs: readonly string[]; readonly any: boolean }>();
  readonly #true = new Set<string>();

  constructor(scene: Scene) {
    this.#scene = scene;
    this.#templates = scene.policies.flatMap(({ templates }) => templates);
    scene.policies.forEach((policy, index) => {
      for (const one of policy.templates) {
        const needs = this.edges(policy, one).flatMap(({ goal }) => goal ?? []);
        this.#needs.set(`applied ${one.name}`, { needs, any: false });
      }
      const applied = (list: readonly SceneTemplate[]): readonly string[] => list.map(({ name }) => `applied ${name}`);
      const counting = policy.templates.filter(({ ignoresPending }) => !ignoresPending);
      this.#needs.set(`Compliant p${index}`, { needs: applied(counting), any: false });
      this.#needs.set(`NonCompliant p${index}`, { needs: applied(policy.templates), any: true });
    });
    for (let size = -1; size !== this.#true.size;) {
      size = this.#true.size;
      for (const [goal, { needs, any }] of this.#needs) {
        const holds = (need: string): boolean => this.#true.has(need);
        if (any ? needs.some(holds) : needs.every(holds)) {
          this.#true.add(goal);
        }
      }
    }
  }

  /** The members of a set. */
  members(number: number): readonly number[] {
    const { policies, sets } = this.#scene;
    const set = sets[number % sets.length];
    const names = new Set(set?.names.map((name) => name % policies.length));
    return [...names].filter((index) => policies[index]?.required === set?.required);
  }

  /** The edges of a template and of its policy, each object once. */
  edges(policy: ScenePolicy, one: SceneTemplate): readonly Edge[] {
    const edges = [...policy.dependsOn, ...one.dependsOn].flatMap((target) => this.#edgesTo(target));
    return [...new Map(edges.map((edge) => [edge.id, edge])).values()];
  }

  #edgesTo([kind, number]: Target): readonly Edge[] {
    const { policies } = this.#scene;
    if (kind === 'template') {
      const { name, ...states } = this.#templates[number % this.#templates.length] ?? assert.fail();
      const goal = states.required === 'Pending' ? undefined : `applied ${name}`;
      return [{ id: `ConfigurationPolicy ${name}`, required: states.required, actual: states.actual, goal }];
    }
    const indexes = kind === 'set' ? this.members(number) : [number % policies.length];
    return indexes.map((index) => {
      const { required: state, actual: has } = policies[index] ?? assert.fail();
      const goal = state === 'Pending' ? undefined : `${state} p${index}`;
      return { id: `Policy default.p${index}`, required: state, actual: has, goal };
    });
  }

  /** What is unmet, and why. */
  unmet(policy: ScenePolicy, one: SceneTemplate): readonly string[] {
    return this.edges(policy, one)
      .filter((edge) => edge.actual !== edge.required)
      .map((edge) => `${edge.id}: ${this.#reason(one, edge)}`)
      .toSorted();
  }

  #reason({ name }: SceneTemplate, { actual: has, goal }: Edge): string {
    if (goal !== undefined && this.#waitsFor(goal, `applied ${name}`)) {
      return 'Cycle';
    }
    return has === undefined ? 'NotFound' : 'Mismatch';
  }

  /** Whether a goal that cannot come true waits for another one, over goals that cannot come true either. */
  #waitsFor(start: string, end: string): boolean {
    const seen = new Set([start]);
    for (const goal of seen) {
      if (this.#true.has(goal)) {
        return false;
      }
      if (goal === end) {
        return true;
      }
      const needs = this.#needs.get(goal)?.needs ?? [];
      needs.filter((need) => !this.#true.has(need)).forEach((need) => seen.add(need));
    }
    return false;
  }
}

function written(targetList: readonly Target[], scene: Scene): readonly Dependency[] {
  const { policies, sets } = scene;
  const templates = policies.flatMap((policy) => policy.templates);
  return targetList.map(([kind, number]) => {
    if (kind === 'template') {
      const { name, required: state } = templates[number % templates.length] ?? assert.fail();
      return config(name, state);
    }
    if (kind === 'set') {
      const index = number % sets.length;
      return dependency(`set${index}`, sets[index]?.required ?? '', { kind: 'PolicySet' });
    }
    const index = number % policies.length;
    return dependency(`p${index}`, policies[index]?.required ?? '');
  });
}

function graphOf(scene: Scene, definition: Definition): DependencyGraph {
  const members = new Map(
    scene.sets.map((_, index) => [`set${index}`, definition.members(index).map((member) => `p${member}`)]),
  );
  const roots = scene.policies.map((policy, index) =>
    rootPolicy(
      `p${index}`,
      written(policy.dependsOn, scene),
      policy.templates.map(({ name, dependsOn, ignoresPending }) =>
        template(name, written(dependsOn, scene), ignoresPending),
      ),
    ),
  );
  return new DependencyGraph(
    roots.map((root) =>
      graphPolicy(root, { clusterNamespace: CLUSTER, policiesOfSet: ({ name }) => members.get(name) }),
    ),
    CLUSTER,
  );
}

/** The copies and the applied templates of a scene. */
function objectsOf({ policies }: Scene): readonly KubernetesObject[] {
  return policies.flatMap(({ actual: has, templates }, index) => [
    ...(has === undefined ? [] : [policyObject(`default.p${index}`, { compliant: has })]),
    ...templates.flatMap(({ name, actual: state }) =>
      state === undefined ? [] : [policyObject(name, { compliant: state }, { kind: 'ConfigurationPolicy' })],
    ),
  ]);
}

describe('the verdict of the graph', () => {
  it('is that of its definition, with dependencies of templates and of PolicySets', () => {
    const counts = { Cycle: 0, Mismatch: 0, NotFound: 0, met: 0 };
    fc.assert(
      fc.property(scenes, (scene) => {
        const definition = new Definition(scene);
        const graph = graphOf(scene, definition);
        const lookup = lookupIn(...objectsOf(scene));
        scene.policies.forEach((policy, index) => {
          policy.templates.forEach((one, position) => {
            const found = graph.policies[index]?.templates[position] ?? assert.fail();
            const unmet = graph.unmetOf(found, lookup);
            unmet.forEach(({ reason }) => (counts[reason as 'Cycle'] += 1));
            counts.met += unmet.length === 0 ? 1 : 0;
            assert.deepEqual(
              unmet.map(({ kind, name, reason }) => `${kind} ${name}: ${reason}`).toSorted(),
              definition.unmet(policy, one),
            );
          });
        });
      }),
      { numRuns: 500 },
    );
    // The scenes have all verdicts.
    assert.ok(
      Object.values(counts).every((count) => count > 20),
      JSON.stringify(counts),
    );
  });
});
