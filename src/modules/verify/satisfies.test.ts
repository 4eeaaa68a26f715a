import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { satisfies } from './satisfies.ts';

/** Whether a trusted certificate with this subject satisfies a requirement for the repositories of `owner`. */
function isOfOwner(subject: string): boolean {
  const issuer = 'https://token.actions.githubusercontent.com';
  const signature = {
    shown: 'a signature',
    signedBytes: Buffer.of(),
    signature: Buffer.of(),
    annotations: new Map<string, string>(),
    bundle: undefined,
  };
  const identified = { signature, identity: { issuer, subject } };
  return satisfies({ kind: 'githubAction', owner: 'owner' }, identified, undefined);
}

describe('the subject of a certificate', () => {
  it('is of an owner below the URL of that owner', () => {
    assert.equal(isOfOwner('https://github.com/owner/repo/.github/workflows/release.yml@refs/tags/v1'), true);
  });

  for (const subject of [
    'https://github.com/owner-evil/repo',
    'https://github.com/owner/',
    'https://github.com/owner/../evil/repo',
    'https://github.com/owner/%2E%2e/evil/repo',
    'https://github.com/owner/..?repo',
    'https://github.com/owner/..#repo',
  ]) {
    it(`is of no owner where the URL leads elsewhere: ${subject}`, () => {
      assert.equal(isOfOwner(subject), false);
    });
  }
});
