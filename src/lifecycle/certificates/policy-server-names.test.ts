import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { labelErrors } from '../../resources/index.ts';
import { dns1035LabelProblems } from '../../names/index.ts';
import { isObjectOf, policyServerLabels, policyServerObjectName } from './policy-server-names.ts';

describe('names of objects of PolicyServers', () => {
  it('are those of the PolicyServer where they are valid for a Service', () => {
    assert.equal(policyServerObjectName('default'), 'policy-server-default');
  });

  it('are valid for Services and labels for any PolicyServer, and differ', () => {
    const long = 'x'.repeat(63);
    const names = [long, `${long.slice(0, 62)}y`, 'a.b', 'a-b', 'a.b.', '-', 'A', `${'a-'.repeat(24)}bcd`];
    for (const name of names) {
      assert.deepEqual(dns1035LabelProblems(policyServerObjectName(name)), [], name);
      assert.deepEqual(
        labelErrors(policyServerLabels(name), 'labels').filter(({ message }) => message.includes('instance')),
        [],
      );
    }
    assert.equal(new Set(names.map((name) => policyServerObjectName(name))).size, names.length);
  });

  it('are ours only with our labels for the same PolicyServer', () => {
    const labels = policyServerLabels('a');
    assert.equal(isObjectOf({ metadata: { labels } }, 'a'), true);
    assert.equal(isObjectOf({ metadata: { labels } }, 'b'), false);
    assert.equal(isObjectOf({ metadata: { labels: { ...labels, 'app.kubernetes.io/managed-by': 'x' } } }, 'a'), false);
    assert.equal(isObjectOf({ metadata: {} }, 'a'), false);
  });
});
