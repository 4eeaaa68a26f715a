// Revisions of Policies on an embedded cluster: what is applied while a change fails, and the way back.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  ANNOTATIONS,
  findCondition,
  type JsonObject,
  type Policy,
  POLICY_UID_LABEL,
} from '../../src/resources/index.ts';
import { GovernanceLab, policyOfChecks, REVISIONS_IN } from './governance-lab.ts';

const ROOT = { kind: 'Policy', name: 'policies/app' };
const COPY = { kind: 'Policy', name: 'local-cluster/policies.app' };
const BROKEN = '{{ fromNowhere "a" }}';

/** A ConfigurationPolicy that informs, with a value that may be a template. */
function configuration(value: string): JsonObject {
  const objectDefinition = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'app', namespace: 'default' } };
  return {
    objectDefinition: {
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'ConfigurationPolicy',
      metadata: { name: 'settings' },
      spec: {
        remediationAction: 'inform',
        'object-templates': [
          { complianceType: 'musthave', objectDefinition: { ...objectDefinition, data: { value } } },
        ],
      },
    },
  };
}

function policyWith(value: string, annotations: Readonly<Record<string, string>> = {}): JsonObject {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'Policy',
    metadata: { name: 'app', namespace: 'policies', annotations },
    spec: { disabled: false, 'policy-templates': [configuration(value)] },
  };
}

/** Waits until the Policy has a phase, by its newest generation, and a revision serves. */
async function phase(lab: GovernanceLab, wanted: string, serving: number): Promise<Policy> {
  return (await lab.sees(ROOT, (object) => {
    const { metadata, status } = object as unknown as Policy;
    return (
      status?.observedGeneration === metadata.generation &&
      status?.phase === wanted &&
      status.servingRevision === serving
    );
  })) as unknown as Policy;
}

async function appliedValue(lab: GovernanceLab): Promise<string> {
  const text = JSON.stringify((await lab.get(COPY))?.spec);
  return /"value":"(\w*)"/.exec(text)?.[1] ?? text;
}

async function states(lab: GovernanceLab): Promise<readonly string[]> {
  const revisions = await lab.list('PolicyRevision');
  return revisions.map(({ metadata, status }) => `${metadata.name} ${String(status?.['state'])}`).sort();
}

describe('the revisions of a Policy', () => {
  it('are made by changes of its spec, and the newest is applied', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyWith('one'));
    await phase(lab, 'Active', 1);
    assert.equal(await appliedValue(lab), 'one');
    await lab.apply(policyWith('two', { note: 'no change of the spec' }));
    const { metadata, status } = await phase(lab, 'Active', 2);
    assert.equal(await appliedValue(lab), 'two');
    assert.deepEqual(await states(lab), ['ocm.policy.policies.app-1 Retired', 'ocm.policy.policies.app-2 Serving']);
    assert.deepEqual(
      status?.revisions?.map(({ revision, cause, digests }) => [revision, cause, digests.length]),
      [
        [2, 'generation 2: policy-templates', 1],
        [1, 'generation 1', 1],
      ],
    );
    const [revision] = await lab.list('PolicyRevision');
    assert.equal(revision?.metadata.labels?.[POLICY_UID_LABEL], metadata.uid);
    assert.equal(revision?.metadata.namespace, REVISIONS_IN);
    await lab.merge(ROOT, { metadata: { annotations: { note: 'other' } } });
    await lab.stopControllers();
    await lab.startControllers();
    await phase(lab, 'Active', 2);
    assert.equal((await lab.list('PolicyRevision')).length, 2, 'neither annotations nor a restart make one');
  });

  it('that fails leaves the last good one applied, and says why', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyWith('one'));
    await phase(lab, 'Active', 1);
    await lab.apply(policyWith(BROKEN));
    const { status } = await phase(lab, 'Degraded', 1);
    assert.equal(await appliedValue(lab), 'one');
    const ready = findCondition(status?.conditions, 'Ready');
    assert.deepEqual([ready?.status, ready?.reason], ['False', 'TemplateError']);
    assert.match(
      status?.message ?? '',
      /^revision 2 failed: spec\.policy-templates\[0\]\.objectDefinition\..*fromNowhere.*; revision 1 stays applied/,
    );
    assert.notEqual(findCondition(status?.conditions, 'Stalled'), undefined);
    await lab.apply(policyWith('three'));
    await phase(lab, 'Active', 3);
    assert.equal(await appliedValue(lab), 'three');
  });

  it('that is the first is applied whatever it is, because there is nothing to keep', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyWith(BROKEN));
    await phase(lab, 'Active', 1);
    const { status } = await lab.reaches('policies/app', 'NonCompliant');
    assert.match(status?.message ?? '', /fromNowhere/);
  });

  it('that is the first is applied also where what is wrong with it is long', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyWith(`{{ ${'a'.repeat(40_000)} "b" }}`));
    await phase(lab, 'Active', 1);
    await lab.apply(policyWith('two'));
    await phase(lab, 'Active', 2);
    await lab.apply(policyWith(`{{ ${'c'.repeat(40_000)} "d" }}`));
    await phase(lab, 'Degraded', 2);
  });

  it('goes back by an annotation, and stays where a pin says', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyWith('one'));
    await phase(lab, 'Active', 1);
    await lab.apply(policyWith('two'));
    await phase(lab, 'Active', 2);
    await lab.merge(ROOT, { metadata: { annotations: { [ANNOTATIONS.rollbackTo]: 'previous' } } });
    const back = await phase(lab, 'Active', 3);
    assert.equal(await appliedValue(lab), 'one');
    assert.equal(back.metadata.annotations?.[ANNOTATIONS.rollbackTo], undefined);
    assert.equal(back.status?.revisions?.[0]?.cause, 'rollback to 1');
    await lab.merge(ROOT, { metadata: { annotations: { [ANNOTATIONS.pin]: '2' } } });
    await phase(lab, 'RolledBack', 2);
    assert.equal(await appliedValue(lab), 'two');
    await lab.apply(policyWith('four'));
    await phase(lab, 'RolledBack', 2);
    assert.equal(await appliedValue(lab), 'two', 'a pin holds what GitOps applies');
    await lab.merge(ROOT, { metadata: { annotations: { [ANNOTATIONS.pin]: null } } });
    await phase(lab, 'Active', 4);
    assert.equal(await appliedValue(lab), 'four');
    await lab.merge(ROOT, { metadata: { annotations: { [ANNOTATIONS.pin]: '9' } } });
    const { status } = await phase(lab, 'Degraded', 4);
    assert.match(status?.message ?? '', /pinned to revision 9, which does not exist/);
  });

  it('go with their Policy, and do not count for a new one of its name', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyWith('one'));
    await phase(lab, 'Active', 1);
    await lab.stopControllers();
    await lab.delete(ROOT);
    await lab.apply(policyWith(BROKEN));
    await lab.startControllers();
    await phase(lab, 'Active', 1);
    const [revision, ...others] = await lab.list('PolicyRevision');
    assert.deepEqual(others, []);
    assert.equal(revision?.metadata.labels?.[POLICY_UID_LABEL], (await lab.get(ROOT))?.metadata.uid);
    await lab.stopControllers();
    await lab.delete(ROOT);
    await lab.startControllers();
    await lab.disappears({ kind: 'PolicyRevision', name: `${REVISIONS_IN}/ocm.policy.policies.app-1` });
  });

  it('that only switches off is applied at once, also after a failure', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyOfChecks('app', ['one']));
    await phase(lab, 'Active', 1);
    await lab.merge(ROOT, { spec: { disabled: true } });
    await phase(lab, 'Active', 2);
    await lab.disappears(COPY);
    await lab.merge(ROOT, { spec: { disabled: false } });
    await phase(lab, 'Active', 3);
    await lab.appears(COPY);
    await lab.apply({ ...policyWith(BROKEN), spec: { disabled: true, 'policy-templates': [configuration(BROKEN)] } });
    await phase(lab, 'Active', 4);
    await lab.disappears(COPY);
  });
});
