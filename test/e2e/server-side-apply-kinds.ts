// The kinds of the differential test of server-side apply, and random changes of their objects.
import assert from 'node:assert/strict';
import { servedKind } from '../../src/apiserver/testing/served-kind.ts';
import type { MergedKind } from '../../src/apiserver/index.ts';
import { WIDGET } from '../../src/apiserver/server-side-apply/testing/widget.ts';
import type { JsonObject, JsonValue } from '../../src/resources/index.ts';
import { WIDGET_SCHEMA } from '../../src/resources/structured-merge/testing/widget-schema.ts';

/** A seeded source of choices (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** At least 0 and less than `limit`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  /** Some of the values, in random order. */
  some<T>(values: readonly T[]): T[] {
    const left = values.filter(() => this.chance(50));
    return left
      .map((value) => [this.below(1_000_000), value] as const)
      .sort(([a], [b]) => a - b)
      .map(([, value]) => value);
  }
}

/** A kind under test. */
export interface TestedKind {
  readonly definition: MergedKind;
  /** Fields that every configuration needs, so that the object is valid. */
  readonly base: (random: Random) => JsonObject;
  /** Optional parts of a configuration. The server must not remove one when another is removed. */
  readonly parts: readonly ((random: Random) => JsonObject)[];
  /** Parts of the status. */
  readonly statusParts: readonly ((random: Random) => JsonObject)[];
  /** Paths of fields that the server sets after it has updated the managers. */
  readonly assigned: readonly (readonly string[])[];
  /** JSON patch operations for the object. */
  readonly operations: (random: Random) => JsonValue[];
}

/** Merges parts to a configuration. Lists are replaced. */
export function combine(parts: readonly JsonObject[]): JsonObject {
  const result: JsonObject = {};
  for (const part of parts) {
    for (const [key, value] of Object.entries(part)) {
      const before = result[key];
      result[key] = isObject(before) && isObject(value) ? combine([before, value]) : value;
    }
  }
  return result;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const WORDS = ['a', 'b', 'c'] as const;
const word = (random: Random): string => random.pick(WORDS);

/** A non-empty list. API servers store empty lists of custom resources, and drop them at the next write. */
const someWords = (random: Random): readonly string[] =>
  [random.some(WORDS), ['b']].find(({ length }) => length > 0) ?? [];

const metadataParts: TestedKind['parts'] = [
  (random) => ({ metadata: { labels: Object.fromEntries(random.some(WORDS).map((key) => [key, word(random)])) } }),
  (random) => ({ metadata: { annotations: { [`example.com/${word(random)}`]: word(random) } } }),
  (random) => ({ metadata: { finalizers: someWords(random).map((one) => `example.com/${one}`) } }),
  (random) => ({
    metadata: {
      ownerReferences: someWords(random).map((name) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name,
        uid: `uid-${name}`,
        ...(random.chance(50) ? { blockOwnerDeletion: random.chance(50) } : {}),
      })),
    },
  }),
];

function labelOperations(random: Random): JsonValue[] {
  return [
    { op: 'add', path: '/metadata/labels', value: { [word(random)]: word(random) } },
    ...(random.chance(30) ? [{ op: 'remove', path: '/metadata/annotations' }] : []),
    ...(random.chance(30) ? [{ op: 'replace', path: '/metadata/labels/a', value: word(random) }] : []),
    ...(random.chance(20) ? [{ op: 'test', path: '/metadata/labels/b', value: 'b' }] : []),
  ];
}

const container = (random: Random, name: string): JsonObject => ({
  name,
  image: `example.com/${word(random)}:1`,
  ...(random.chance(50) ? { env: random.some(WORDS).map((one) => ({ name: one, value: word(random) })) } : {}),
  ...(random.chance(40)
    ? {
        ports: random.some([80, 81, 82]).map((port) => ({
          containerPort: port,
          ...(random.chance(30) ? { protocol: random.pick(['TCP', 'UDP']) } : {}),
        })),
      }
    : {}),
  ...(random.chance(30) ? { resources: { requests: { cpu: random.pick(['1', '100m']) } } } : {}),
  ...(random.chance(20) ? { args: random.some(WORDS) } : {}),
  ...(random.chance(20) ? { securityContext: { runAsUser: random.below(3) } } : {}),
  ...(random.chance(20)
    ? { volumeMounts: random.some(WORDS).map((one) => ({ name: 'tmp', mountPath: `/${one}` })) }
    : {}),
});

const condition = (random: Random, type: string, custom: boolean): JsonObject => ({
  type,
  status: random.pick(['True', 'False']),
  reason: random.pick(['One', 'Two']),
  message: word(random),
  ...(custom ? { lastTransitionTime: '2024-01-01T00:00:00Z' } : {}),
});

const replicasOperations = (random: Random): JsonValue[] => [
  ...labelOperations(random),
  ...(random.chance(50) ? [{ op: 'replace', path: '/spec/replicas', value: random.below(3) }] : []),
];

/** The kinds under test. */
export function testedKinds(): readonly TestedKind[] {
  return [
    {
      definition: builtin('apps/v1', 'Deployment'),
      base: (random) => ({
        spec: {
          selector: { matchLabels: { app: 'x' } },
          template: {
            metadata: { labels: { app: 'x' } },
            spec: { containers: [container(random, 'a')], volumes: [{ name: 'tmp', emptyDir: {} }] },
          },
        },
      }),
      parts: [
        ...metadataParts,
        (random) => ({ spec: { replicas: random.below(3) } }),
        (random) => ({ spec: { minReadySeconds: random.below(2) } }),
        (random) => ({ spec: { paused: random.chance(50) } }),
        (random) => ({ spec: { strategy: random.pick([{ type: 'Recreate' }, { type: 'RollingUpdate' }]) } }),
        (random) => ({
          spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: random.pick([1, '30%']) } } },
        }),
        (random) => ({
          spec: { template: { spec: { containers: random.some(WORDS).map((name) => container(random, name)) } } },
        }),
        (random) => ({ spec: { template: { spec: { initContainers: [container(random, 'i')] } } } }),
        (random) => ({ spec: { template: { spec: { nodeSelector: { [word(random)]: word(random) } } } } }),
        (random) => ({ spec: { template: { metadata: { annotations: { [word(random)]: word(random) } } } } }),
        (random) => ({
          spec: { template: { spec: { tolerations: random.some(WORDS).map((key) => ({ key, operator: 'Exists' })) } } },
        }),
        (random) => ({ spec: { template: { spec: { securityContext: { fsGroup: random.below(3) } } } } }),
        (random) => ({
          spec: {
            template: {
              spec: {
                topologySpreadConstraints: random.some(WORDS).map((topologyKey) => ({
                  topologyKey,
                  maxSkew: 1,
                  whenUnsatisfiable: 'DoNotSchedule',
                })),
              },
            },
          },
        }),
      ],
      statusParts: [
        (random) => ({ status: { observedGeneration: random.below(3) } }),
        (random) => ({ status: { conditions: random.some(WORDS).map((type) => condition(random, type, false)) } }),
      ],
      assigned: [],
      operations: replicasOperations,
    },
    {
      definition: builtin('v1', 'Pod'),
      base: (random) => ({ spec: { containers: [{ name: 'a', image: `example.com/${word(random)}:1` }] } }),
      parts: [...metadataParts, (random) => ({ spec: { activeDeadlineSeconds: 10 - random.below(3) } })],
      statusParts: [
        (random) => ({ status: { message: word(random) } }),
        (random) => ({ status: { phase: random.pick(['Pending', 'Running']) } }),
        (random) => ({
          status: {
            conditions: random
              .some(WORDS)
              .map((type) => ({ type: `example.com/${type}`, status: random.pick(['True', 'False']) })),
          },
        }),
        (random) => ({
          status: {
            podIPs: random
              .some(['10.0.0.1', 'fd00::1'])
              .slice(0, 1)
              .map((ip) => ({ ip })),
          },
        }),
      ],
      assigned: [
        ['spec', 'tolerations'],
        ['spec', 'priority'],
        ['spec', 'preemptionPolicy'],
        ['spec', 'serviceAccount'],
      ],
      operations: labelOperations,
    },
    {
      definition: builtin('v1', 'Service'),
      base: (random) => ({
        spec: { ports: [{ name: 'a', port: 80, ...(random.chance(50) ? { protocol: 'TCP' } : {}) }] },
      }),
      parts: [
        ...metadataParts,
        (random) => ({ spec: { selector: { [word(random)]: word(random) } } }),
        (random) => ({
          spec: {
            ports: random
              .some([80, 81, 82])
              .map((port) => ({ name: `p${port}`, port, targetPort: random.pick([port, 'web']) })),
          },
        }),
        (random) => ({ spec: { sessionAffinity: random.pick(['None', 'ClientIP']) } }),
        (random) => ({ spec: { publishNotReadyAddresses: random.chance(50) } }),
      ],
      statusParts: [
        (random) => ({ status: { conditions: random.some(WORDS).map((type) => condition(random, type, true)) } }),
        (random) => ({ status: { loadBalancer: {}, conditions: [condition(random, 'z', true)] } }),
      ],
      assigned: [
        ['spec', 'clusterIP'],
        ['spec', 'clusterIPs'],
        ['spec', 'ipFamilies'],
        ['spec', 'ipFamilyPolicy'],
      ],
      operations: labelOperations,
    },
    {
      definition: builtin('v1', 'ConfigMap'),
      base: () => ({}),
      parts: [
        ...metadataParts,
        (random) => ({ data: { [word(random)]: word(random) } }),
        (random) => ({ data: { a: word(random), b: word(random) } }),
        (random) => ({ binaryData: { [`x${word(random)}`]: random.pick(['AA==', 'AQ==']) } }),
      ],
      statusParts: [],
      assigned: [],
      operations: (random) => [
        ...labelOperations(random),
        ...(random.chance(50) ? [{ op: 'add', path: '/data', value: { c: word(random) } }] : []),
      ],
    },
    widgets(),
  ];
}

function builtin(apiVersion: string, kind: string): MergedKind {
  const definition = servedKind(apiVersion, kind);
  assert.ok(definition !== undefined, `${kind} of ${apiVersion} is known`);
  return definition;
}

/** The CustomResourceDefinition of the test. */
export const WIDGET_CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: WIDGET_SCHEMA },
      },
    ],
  },
};

function widgets(): TestedKind {
  return {
    definition: WIDGET,
    base: () => ({}),
    parts: [
      ...metadataParts,
      (random) => ({ spec: { replicas: random.below(3) } }),
      (random) => ({ spec: { mode: word(random) } }),
      (random) => ({ spec: { isOn: random.chance(50), ratio: random.pick([0.5, 1, 1e21, 2.25]) } }),
      (random) => ({
        spec: {
          ports: random.some([80, 81, 82, 83]).map((port) => ({
            port,
            ...(random.chance(40) ? { protocol: random.pick(['TCP', 'UDP']) } : {}),
            ...(random.chance(50) ? { name: word(random) } : {}),
            ...(random.chance(50) ? { tags: random.some(WORDS) } : {}),
          })),
        },
      }),
      (random) => ({ spec: { tags: random.some(['a', 'b', 'c', '<d>', 'é"\\', 'f']) } }),
      (random) => ({ spec: { numbers: random.some([1, 2, 3, 4, 5]) } }),
      (random) => ({ spec: { steps: random.some(WORDS) } }),
      (random) => ({ spec: { rules: random.some(WORDS).map((a) => ({ a })) } }),
      (random) => ({ spec: { selector: { [random.pick(['a', 'b'])]: word(random) } } }),
      (random) => ({ spec: { selector: {}, mode: word(random) } }),
      (random) => ({ spec: { options: Object.fromEntries(random.some(WORDS).map((key) => [key, word(random)])) } }),
      (random) => ({
        spec: {
          groups: Object.fromEntries(
            random
              .some(WORDS)
              .map((key) => [
                key,
                random.pick([{}, { a: word(random) }, { b: word(random), list: random.some(WORDS) }]),
              ]),
          ),
        },
      }),
      (random) => ({
        spec: {
          free: random.pick<JsonObject>([
            {},
            { x: word(random) },
            { x: { y: word(random), list: [{ name: word(random) }, 1, null] } },
            { x: [word(random)], y: { z: {} } },
          ]),
        },
      }),
      (random) => ({ spec: { either: random.pick([1, 'one', '10%']) } }),
      (random) => ({
        spec: {
          template: {
            apiVersion: 'v1',
            kind: 'Pod',
            metadata: {
              name: 'x',
              labels: { [word(random)]: 'x' },
              finalizers: random.some(['example.com/a', 'example.com/b']),
            },
            spec: { [word(random)]: word(random) },
          },
        },
      }),
      (random) => ({ spec: { maybe: random.pick(['x', null]) } }),
    ],
    statusParts: [
      (random) => ({ status: { phase: word(random) } }),
      (random) => ({ status: { conditions: random.some(WORDS).map((type) => condition(random, type, true)) } }),
    ],
    assigned: [],
    operations: (random) => [
      ...labelOperations(random),
      ...(random.chance(40) ? [{ op: 'add', path: '/spec/tags/-', value: `t${random.below(5)}` }] : []),
      ...(random.chance(40) ? [{ op: 'remove', path: '/spec/ports/0' }] : []),
      ...(random.chance(20) ? [{ op: 'move', from: '/spec/mode', path: '/spec/maybe' }] : []),
    ],
  };
}
