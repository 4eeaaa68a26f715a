import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyStatus as ServerStatus } from '../server/index.ts';
import type { ServedPolicy } from './policy-set.ts';
import { type PolicyFacts, policyStatus } from './policy-status.ts';

function served(phase: ServerStatus['phase'], generation = 2, rest: Partial<ServerStatus> = {}): ServedPolicy {
  const serving = phase === 'Pending' || phase === 'Error' ? null : {};
  const status = { phase, reason: 'Serving', message: `it is ${phase}`, mode: 'protect', serving, ...rest };
  return { generation, status: status as unknown as ServerStatus };
}

function facts(rest: Partial<PolicyFacts>): PolicyFacts {
  return { generation: 2, served: undefined, isAsked: true, refusal: undefined, ...rest };
}

/** `policyStatus PolicyActive UpToDate` */
function summary({ policyStatus: word, conditions = [] }: ReturnType<typeof policyStatus>): string {
  return [word, ...conditions.map(({ status }) => status)].join(' ');
}

describe('policyStatus', () => {
  it('says what the policy server says, in the words of both', () => {
    const of = (phase: ServerStatus['phase']): string =>
      summary(policyStatus(facts({ served: served(phase) }), undefined, 0));
    assert.equal(of('Active'), 'active True True');
    assert.equal(of('Updating'), 'active True False');
    assert.equal(of('Degraded'), 'active True False');
    assert.equal(of('Pending'), 'pending False False');
    assert.equal(of('Error'), 'pending False False');
    assert.equal(summary(policyStatus(facts({}), undefined, 0)), 'scheduled False False');
  });

  it('is about the generation that the policy server was told of', () => {
    const status = policyStatus(facts({ generation: 3, served: served('Active', 2) }), undefined, 0);
    assert.equal(status.observedGeneration, 2);
    assert.ok(status.conditions?.every(({ observedGeneration }) => observedGeneration === 2));
    assert.equal(policyStatus(facts({ generation: 3 }), undefined, 0).observedGeneration, 3);
  });

  it('says why the API server does not ask', () => {
    const refused = facts({ served: served('Active'), isAsked: false, refusal: 'not like this' });
    const status = policyStatus(refused, undefined, 0);
    assert.deepEqual([status.phase, status.reason, status.message], ['Error', 'WebhookRefused', 'not like this']);
    assert.equal(summary(status), 'pending False False');
    assert.equal(status.mode, 'unknown');
    const asBefore = policyStatus({ ...refused, isAsked: true }, undefined, 0);
    assert.equal(asBefore.phase, 'Degraded');
    assert.equal(summary(asBefore), 'active True False');
  });

  it('keeps times of conditions that stay as they are', () => {
    const first = policyStatus(facts({ served: served('Active') }), undefined, 0);
    assert.deepEqual(policyStatus(facts({ served: served('Active') }), first, 60_000), first);
    const later = policyStatus(facts({ served: served('Degraded') }), first, 60_000);
    assert.deepEqual(
      later.conditions?.map(({ lastTransitionTime }) => lastTransitionTime),
      ['1970-01-01T00:00:00Z', '1970-01-01T00:01:00Z'],
    );
  });
});
