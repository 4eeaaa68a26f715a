import assert from 'node:assert/strict';
import { it } from 'node:test';
import { notLoadedText } from './not-loaded-text.ts';

it('a policy whose module needs credentials says where the auditor has its own from', () => {
  const outcome = { ok: false, message: 'registry.example: 401', transient: false } as const;
  assert.match(
    notLoadedText({ ...outcome, reason: 'Unauthorized' }),
    /^Unauthorized: registry\.example: 401\. .*auditor\.imagePullSecret$/,
  );
  assert.match(notLoadedText({ ...outcome, reason: 'AccessDenied' }), /auditor\.imagePullSecret$/);
  assert.equal(notLoadedText({ ...outcome, reason: 'ModuleNotFound' }), 'ModuleNotFound: registry.example: 401');
});
