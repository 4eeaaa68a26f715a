// Every reason of the condition `Ready` of governance policies is documented, and has an answer where something is to be done.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { POLICY_REASONS } from '../governance/index.ts';
import { toDoAboutGovernance } from './governance-reasons.ts';

const REASONS = Object.values<string>(POLICY_REASONS);

describe('reasons of governance policies', () => {
  it('are those of the documentation', () => {
    const page = readFileSync(new URL('../../docs/governance.md', import.meta.url), 'utf8');
    const section = page.split('\n## Reasons\n')[1]?.split('\n## ')[0] ?? assert.fail('no section Reasons');
    const rows = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, reason]) => reason ?? '');
    assert.deepEqual(rows.toSorted(), REASONS.toSorted());
  });

  it('have one sentence each that says what to do', () => {
    const silent = REASONS.filter((reason) => toDoAboutGovernance(reason) === undefined);
    assert.deepEqual(silent, ['Evaluated', 'DependenciesPending', 'Evaluating']);
    for (const reason of REASONS) {
      assert.match(toDoAboutGovernance(reason) ?? 'Nothing.', /^[A-Z].*[.)]$/);
    }
    assert.equal(toDoAboutGovernance('constructor'), undefined);
  });
});
