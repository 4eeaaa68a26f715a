// Templates of the hub on the cluster that is its own hub: from a Policy to the objects that it enforces.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../src/resources/index.ts';
import { GovernanceLab, type LabObject } from './governance-lab.ts';

const GROUP = 'policy.open-cluster-management.io';
const CONFIGURATION = { kind: 'ConfigurationPolicy', name: 'local-cluster/greeting' };
const GREETING = { kind: 'ConfigMap', name: 'default/greeting' };

const settings = (namespace: string, text: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings', namespace },
  data: { text },
});

/** A Policy that enforces a ConfigMap with a text. */
function greeting(text: string): JsonObject {
  const objectDefinition = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'greeting', namespace: 'default' },
    data: { text },
  };
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name: 'greeting', namespace: 'policies' },
    spec: {
      disabled: false,
      'policy-templates': [
        {
          objectDefinition: {
            apiVersion: `${GROUP}/v1`,
            kind: 'ConfigurationPolicy',
            metadata: { name: 'greeting' },
            spec: {
              remediationAction: 'enforce',
              pruneObjectBehavior: 'DeleteAll',
              'object-templates': [{ complianceType: 'musthave', objectDefinition }],
            },
          },
        },
      ],
    },
  };
}

const textOf = (object: LabObject | undefined): unknown => object?.data?.['text'];

describe('a Policy with templates of the hub', () => {
  it('follows the ConfigMap of its namespace, whose text is no template', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(settings('policies', 'hello'), greeting('{{hub fromConfigMap "" "settings" "text" hub}}!'));
    await lab.sees(GREETING, (object) => textOf(object) === 'hello!');
    const text = '{{ fromConfigMap "default" "greeting" "text" }} {{hub .ManagedClusterName hub}}';
    await lab.apply(settings('policies', text));
    await lab.sees(GREETING, (object) => textOf(object) === `${text}!`);
    await lab.reaches('policies/greeting', 'Compliant');
  });

  it('that cannot be resolved is not compliant, and deletes nothing; the cause is gone, and it goes on', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(settings('policies', 'hello'), greeting('{{hub fromConfigMap "" "settings" "text" hub}}'));
    const { metadata } = await lab.sees(GREETING, (object) => textOf(object) === 'hello');
    await lab.delete({ kind: 'ConfigMap', name: 'policies/settings' });
    const failed = await lab.reaches('policies/greeting', 'NonCompliant');
    assert.match(failed.status?.message ?? '', /template-error; .*there is no ConfigMap settings/);
    await lab.sees(CONFIGURATION, (object) => object?.metadata.annotations?.['portcullis.dev/suspended'] !== undefined);
    const [event] = await lab.events('PolicyPropagation');
    assert.match(event?.note ?? '', /^Failed to resolve templates for cluster local-cluster\/local-cluster: /);
    assert.equal((await lab.get(GREETING))?.metadata.uid, metadata.uid);
    await lab.apply(settings('policies', 'again'));
    await lab.sees(GREETING, (object) => textOf(object) === 'again');
    await lab.reaches('policies/greeting', 'Compliant');
  });

  it('reads no other namespace', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(settings('default', 'hunter2'), greeting('{{hub fromConfigMap "default" "settings" "text" hub}}'));
    const refused = await lab.reaches('policies/greeting', 'NonCompliant');
    assert.match(refused.status?.message ?? '', /the template may not read ConfigMap default\/settings/);
    const copy = await lab.policy('local-cluster/policies.greeting');
    assert.ok(!JSON.stringify([copy, refused]).includes('hunter2'));
    assert.equal(await lab.get(CONFIGURATION), undefined);
  });
});
