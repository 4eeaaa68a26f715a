// The controller is killed after any of its writes: a fresh one ends in the same state.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Cluster, ClusterError } from '../../src/cluster/index.ts';
import type { JsonObject } from '../../src/resources/index.ts';
import { until } from '../server/harness.ts';
import { GovernanceLab, withWrites } from './governance-lab.ts';

const GROUP = 'policy.open-cluster-management.io';
const ROOT = 'policies/settings';
const COPY = 'local-cluster/policies.settings';
const CONFIGURATION = { kind: 'ConfigurationPolicy', name: 'local-cluster/settings' };

function policy(names: readonly string[]): JsonObject {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name: 'settings', namespace: 'policies' },
    spec: {
      disabled: false,
      'policy-templates': [
        {
          objectDefinition: {
            apiVersion: `${GROUP}/v1`,
            kind: 'ConfigurationPolicy',
            metadata: { name: 'settings' },
            spec: {
              remediationAction: 'enforce',
              pruneObjectBehavior: 'DeleteIfCreated',
              'object-templates': names.map((name) => ({
                complianceType: 'musthave',
                recreateOption: name.startsWith('recreated') ? 'Always' : 'None',
                objectDefinition: {
                  apiVersion: 'v1',
                  kind: 'ConfigMap',
                  metadata: { name, namespace: 'default' },
                  data: { mode: 'safe' },
                },
              })),
            },
          },
        },
      ],
    },
  };
}

/** Objects that were there before the policy, which never deletes them. */
const THERE_BEFORE: readonly string[] = ['old', 'recreated'];

/** Kills a controller: its n-th write is done, and after it the cluster does not answer. */
class Kill {
  readonly #at: number;
  writes = 0;
  #isOff = false;
  /** ConfigMaps that were created since the last status of the ConfigurationPolicy, which is the only proof of their creator. */
  #unrecorded: string[] = [];

  constructor(at: number) {
    this.#at = at;
  }

  get isKilled(): boolean {
    return this.writes >= this.#at;
  }

  /** What the killed controller created, and nothing proves. */
  get unproven(): ReadonlySet<string> {
    return new Set(this.isKilled ? this.#unrecorded : []);
  }

  /** For the controller that takes over. */
  off(): void {
    this.#isOff = true;
  }

  through(cluster: Cluster): Cluster {
    const killed = withWrites(cluster, async (send, verb) => {
      // Events are written later, and change nothing.
      if (this.#isOff || verb.endsWith(' events')) {
        return await send();
      }
      if (this.isKilled) {
        throw new ClusterError('unreachable', 'killed');
      }
      this.writes += 1;
      const answer = await send();
      if (verb.endsWith(' configurationpolicies')) {
        this.#unrecorded = [];
      }
      if (this.isKilled) {
        throw new ClusterError('unreachable', 'killed');
      }
      return answer;
    });
    return {
      ...killed,
      create: async (type, object, options) => {
        if (type.kind === 'ConfigMap' && !this.isKilled && !THERE_BEFORE.includes(object.metadata.name ?? '')) {
          this.#unrecorded.push(object.metadata.name ?? '');
        }
        return await killed.create(type, object, options);
      },
    };
  }
}

/** What a user sees. */
async function stateOf(lab: GovernanceLab): Promise<string> {
  const [root, copy, configuration, maps] = await Promise.all([
    lab.policy(ROOT),
    lab.policy(COPY),
    lab.get(CONFIGURATION),
    lab.list('ConfigMap'),
  ]);
  const related = (configuration?.status?.['relatedObjects'] ?? []) as readonly {
    readonly object: { readonly metadata: { readonly name: string } };
    readonly properties?: { readonly createdByPolicy?: boolean };
  }[];
  return JSON.stringify({
    root: [root?.status?.compliant, root?.status?.observedGeneration === root?.metadata.generation],
    copy: [copy?.status?.compliant, copy?.status?.details?.map(({ state, compliant }) => [state, compliant])],
    related: related.map(({ object, properties }) => [object.metadata.name, properties?.createdByPolicy]),
    maps: sorted(
      maps.filter(({ metadata }) => metadata.namespace === 'default').map(({ metadata }) => metadata.name ?? ''),
    ),
  });
}

/** What nothing proves to be of the policy has no known creator, and stays. */
type State = (unproven: ReadonlySet<string>) => string;

const sorted = (names: Iterable<string>): readonly string[] =>
  [...new Set(names)].toSorted((one, other) => (one < other ? -1 : 1));

const seen =
  (related: readonly (readonly [string, boolean])[]): State =>
  (unproven) =>
    JSON.stringify({
      root: ['Compliant', true],
      copy: ['Compliant', [['Applied', 'Compliant']]],
      related: related.map(([name, isOwn]) => [name, unproven.has(name) ? null : isOwn]),
      maps: sorted([...related.map(([name]) => name), ...unproven]),
    });
const gone: State = (unproven) =>
  JSON.stringify({ root: [null, true], copy: [null, null], related: [], maps: sorted([...THERE_BEFORE, ...unproven]) });

/** Each step, and the state after it. */
const STEPS: readonly { readonly change: (lab: GovernanceLab) => Promise<void>; readonly state: State }[] = [
  {
    change: async (lab) => await lab.apply(policy(['a', 'b', 'old', 'recreated'])),
    state: seen([
      ['a', true],
      ['b', true],
      ['old', false],
      ['recreated', false],
    ]),
  },
  {
    change: async (lab) => await lab.apply(policy(['b', 'c', 'old', 'recreated'])),
    state: seen([
      ['b', true],
      ['c', true],
      ['old', false],
      ['recreated', false],
    ]),
  },
  { change: async (lab) => await lab.delete({ kind: 'Policy', name: ROOT }), state: gone },
];

async function run(kill: Kill): Promise<void> {
  await using lab = await GovernanceLab.start({ through: (cluster) => kill.through(cluster) });
  for (const name of THERE_BEFORE) {
    await lab.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } });
  }
  let isRestarted = false;
  for (const { change, state } of STEPS) {
    await change(lab);
    let last = '';
    await until(
      async () => {
        if (kill.isKilled && !isRestarted) {
          isRestarted = true;
          await lab.stopControllers();
          kill.off();
          await lab.startControllers();
        }
        last = await stateOf(lab);
        return last === state(kill.unproven);
      },
      () => `after write ${kill.writes}: ${state(kill.unproven)}, last ${last}`,
    );
  }
}

describe('a controller that is killed', () => {
  it('after any of its writes leaves nothing that a fresh one does not bring to the same end', async () => {
    const whole = new Kill(Number.POSITIVE_INFINITY);
    await run(whole);
    assert.ok(whole.writes > 10, `${whole.writes} writes`);
    for (let at = 1; at <= whole.writes; at += 1) {
      await run(new Kill(at));
    }
  });
});
