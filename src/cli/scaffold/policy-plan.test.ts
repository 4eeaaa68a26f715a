import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CliError, EXIT } from '../errors.ts';
import { type PlanFlags, planPolicy } from './policy-plan.ts';

const FLAGS: PlanFlags = { type: 'ClusterAdmissionPolicy', language: 'cel', resource: 'pods' };

describe('planPolicy', () => {
  it('knows resources by all of their names', () => {
    const cases = [
      ['pods', 'Pod'],
      ['po', 'Pod'],
      ['deployment', 'Deployment'],
      ['deploy', 'Deployment'],
      ['deployments.apps', 'Deployment'],
      ['CronJobs', 'CronJob'],
      ['events', 'Event'],
    ] as const;
    for (const [resource, kind] of cases) {
      assert.equal(planPolicy('a', { ...FLAGS, resource }).kind.kind, kind, resource);
    }
  });

  it('places policies of namespaces, by default in the namespace default', () => {
    assert.equal(planPolicy('a', FLAGS).namespace, undefined);
    for (const type of ['AdmissionPolicy', 'AdmissionPolicyGroup'] as const) {
      assert.equal(planPolicy('a', { ...FLAGS, type }).namespace, 'default');
      assert.equal(planPolicy('a', { ...FLAGS, type, namespace: 'shop' }).namespace, 'shop');
    }
  });

  it('refuses what a cluster would refuse, and flags that contradict each other', () => {
    const cases: readonly (readonly [name: string, flags: Partial<PlanFlags>, message: RegExp])[] = [
      ['Upper', {}, /"Upper" cannot be the name of a policy/],
      ['a: {b', {}, /cannot be the name of a policy/],
      ['a', { resource: 'pod s' }, /pod s is no resource of Kubernetes/],
      ['a', { resource: 'deploymnets' }, /did you mean deployments\?/],
      ['a', { type: 'AdmissionPolicy', resource: 'nodes' }, /an AdmissionPolicy never sees requests for nodes/],
      ['a', { type: 'AdmissionPolicyGroup', resource: 'roles' }, /never sees requests for roles/],
      ['a', { type: 'AdmissionPolicy', namespace: 'a.b' }, /"a.b" cannot be the name of a namespace/],
      ['a', { namespace: 'shop' }, /has no namespace/],
      ['a', { type: 'ClusterAdmissionPolicyGroup', mutating: true }, /members of groups cannot change objects/],
      ['a', { type: 'AdmissionPolicyGroup', language: 'rego' }, /a new group has members in CEL, got --language rego/],
      ['a', { language: 'gatekeeper', mutating: true }, /--mutating is only used with --language cel/],
    ];
    for (const [name, flags, message] of cases) {
      assert.throws(
        () => planPolicy(name, { ...FLAGS, ...flags }),
        (error) => error instanceof CliError && error.exitCode === EXIT.usage && message.test(error.message),
        String(message),
      );
    }
  });
});
