import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { reportedRights } from './account-rights.ts';

describe('the rights that a status says are missing', () => {
  const user = 'system:serviceaccount:portcullis:portcullis-governance';
  const reported = (message: string): readonly string[] =>
    reportedRights(user, {
      apiVersion: 'v1',
      kind: 'Policy',
      metadata: { namespace: 'a', name: 'b' },
      status: { details: [{ history: [{ message }] }] },
    }).map(({ right }) => JSON.stringify(right));

  it('are those of the governance account', () => {
    const text = (name: string): string =>
      `deployments.apps is forbidden: User "${name}" cannot create resource "deployments" in API group "apps" in the namespace "shop"`;
    assert.deepEqual(reported(text(user)), [
      '{"verb":"create","group":"apps","resource":"deployments","namespace":"shop"}',
    ]);
    assert.deepEqual(reported(text('system:serviceaccount:shop:portcullis-governance')), []);
    assert.deepEqual(reported(`${text(user).slice(0, -40)}…`), []);
  });

  it('are those of the current message, not of former ones', () => {
    const message = `x is forbidden: User "${user}" cannot list resource "secrets" in API group ""`;
    const rights = (history: readonly string[]): number =>
      reportedRights(user, {
        apiVersion: 'v1',
        kind: 'ConfigurationPolicy',
        metadata: { namespace: 'a', name: 'b' },
        status: { compliant: 'Compliant', history: history.map((one) => ({ message: one })) },
      }).length;
    assert.equal(rights([message, 'fine']), 1);
    assert.equal(rights(['Compliant; notification', message]), 0);
  });

  it('are read in linear time from hostile texts', () => {
    assert.deepEqual(reported('User "'.repeat(200_000)), []);
  });
});
