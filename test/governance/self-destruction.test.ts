// Policies with all rights that work against the controller itself: no endless loops, and others go on.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../src/resources/index.ts';
import { until } from '../server/harness.ts';
import { GovernanceLab, withWrites } from './governance-lab.ts';

const GROUP = 'policy.open-cluster-management.io';

function policy(name: string, templates: JsonObject[]): JsonObject {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace: 'policies' },
    spec: {
      disabled: false,
      'policy-templates': [
        {
          objectDefinition: {
            apiVersion: `${GROUP}/v1`,
            kind: 'ConfigurationPolicy',
            metadata: { name },
            spec: { remediationAction: 'enforce', 'object-templates': templates },
          },
        },
      ],
    },
  };
}

const mustNot = (apiVersion: string, kind: string, metadata: JsonObject): JsonObject => ({
  complianceType: 'mustnothave',
  objectDefinition: { apiVersion, kind, metadata },
});
const configMap = (name: string, data: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data,
});
const must = (objectDefinition: JsonObject, fields: JsonObject = {}): JsonObject => ({
  complianceType: 'musthave',
  objectDefinition,
  ...fields,
});

/** Evaluations in quick succession before a policy waits, and what the seconds of a test add. */
const MOST_DELETIONS = 20;

describe('a policy with all rights', () => {
  for (const [deleted, template] of [
    ['itself', mustNot(`${GROUP}/v1`, 'ConfigurationPolicy', { name: 'hostile', namespace: 'local-cluster' })],
    ['its copy', mustNot(`${GROUP}/v1`, 'Policy', { name: 'policies.hostile', namespace: 'local-cluster' })],
    ['the namespace of the cluster', mustNot('v1', 'Namespace', { name: 'local-cluster' })],
  ] as const) {
    it(`that deletes ${deleted} does so less and less often, and keeps no other policy from working`, async () => {
      let deletions = 0;
      await using lab = await GovernanceLab.start({
        through: (cluster) =>
          withWrites(cluster, async (send, verb) => {
            deletions += /^delete (?:policies|configurationpolicies|namespaces)$/.test(verb) ? 1 : 0;
            return await send();
          }),
      });
      await lab.apply(policy('hostile', [template]));
      await until(
        () => Promise.resolve(deletions >= 5),
        () => `5 deletions, last ${deletions}`,
      );
      await lab.apply(policy('other', [must(configMap('other'))]));
      await lab.appears({ kind: 'ConfigMap', name: 'default/other' });
      // As long as a loop without delays takes for thousands of rounds.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      assert.ok(deletions <= MOST_DELETIONS, `${deletions} deletions`);
    });
  }

  it('that recreates an object which another one changes does so less and less often', async () => {
    let writes = 0;
    await using lab = await GovernanceLab.start({
      through: (cluster) =>
        withWrites(cluster, async (send, verb) => {
          writes += verb.endsWith(' configmaps') ? 1 : 0;
          return await send();
        }),
    });
    await lab.apply(
      policy('one', [must(configMap('fought', { mode: 'one' }), { recreateOption: 'Always' })]),
      policy('two', [must(configMap('fought', { mode: 'two' }), { recreateOption: 'Always' })]),
    );
    await lab.sees({ kind: 'ConfigurationPolicy', name: 'local-cluster/one' }, (object) =>
      JSON.stringify(object?.status ?? {}).includes('"Contested"'),
    );
    const before = writes;
    await lab.apply(policy('other', [must(configMap('other'))]));
    await lab.reaches('policies/other', 'Compliant');
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.ok(writes - before <= 5, `${writes - before} writes`);
  });
});
