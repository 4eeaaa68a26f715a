import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ComplianceState, Policy, PolicySet } from '../../../resources/index.ts';
import { policySetStatus } from './policy-set-status.ts';

type Member = ComplianceState | 'disabled' | 'unknown' | undefined;

function status(members: Readonly<Record<string, Member>>) {
  const set: PolicySet = {
    apiVersion: 'policy.open-cluster-management.io/v1beta1',
    kind: 'PolicySet',
    metadata: { name: 'base', namespace: 'policies', generation: 1 },
    spec: { policies: Object.keys(members) },
  };
  const policyOf = (name: string): Policy | undefined => {
    const member = members[name];
    return member === undefined
      ? undefined
      : {
          apiVersion: 'policy.open-cluster-management.io/v1',
          kind: 'Policy',
          metadata: { name, namespace: 'policies' },
          spec: { disabled: member === 'disabled', 'policy-templates': [] },
          ...(member === 'disabled' || member === 'unknown' ? {} : { status: { compliant: member } }),
        };
  };
  const { compliant, statusMessage } = policySetStatus(set, policyOf, 0);
  return [compliant, statusMessage];
}

const ALL = 'All policies are reporting status';

describe('the status of a PolicySet', () => {
  for (const [members, compliant, message] of [
    [{ a: 'Compliant', b: 'Compliant' }, 'Compliant', ALL],
    [{ a: 'Compliant', b: 'NonCompliant' }, 'NonCompliant', ALL],
    [{ b: 'Pending', a: 'Pending', c: 'Compliant' }, 'Pending', 'Policies awaiting pending dependencies: a, b'],
    [{ a: 'Pending', b: 'NonCompliant' }, 'NonCompliant', 'Policies awaiting pending dependencies: a'],
    [{ a: 'Compliant', b: 'disabled' }, 'Compliant', 'Disabled policies: b'],
    [{ a: 'disabled' }, undefined, 'Disabled policies: a'],
    [{ a: 'NonCompliant', b: 'unknown' }, undefined, 'No status provided while awaiting policy status: b'],
    [{ a: 'Compliant', b: undefined }, undefined, 'Deleted policies: b'],
    [{ a: 'NonCompliant', b: undefined }, 'NonCompliant', 'Deleted policies: b'],
    [
      { a: 'Pending', b: 'disabled', c: 'unknown', d: undefined },
      undefined,
      'Policies awaiting pending dependencies: a; Disabled policies: b; No status provided while awaiting policy status: c; Deleted policies: d',
    ],
    [{}, undefined, ALL],
  ] as readonly (readonly [Readonly<Record<string, Member>>, string | undefined, string])[]) {
    it(`of ${JSON.stringify(members)} is ${String(compliant)}`, () => {
      assert.deepEqual(status(members), [compliant, message]);
    });
  }

  it('names some of very many Policies', () => {
    const name = (index: number): string => `${'x'.repeat(250)}${index}`;
    const members = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [name(100 + index), undefined]));
    const [, message = ''] = status(members);
    assert.match(message, /^Deleted policies: x+100, .* and 880 more$/);
    assert.ok(message.length < 32_768 / 4);
  });
});
