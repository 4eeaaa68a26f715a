import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { admissionResponse, verdictOf, withHttpCode } from './admission-response.ts';

const NOTHING = { auditAnnotations: null, warnings: null };

describe('an AdmissionResponse', () => {
  it('has its fields in the order of Kubewarden, and no status without a reason', () => {
    assert.equal(
      JSON.stringify(admissionResponse('u', { allowed: true, ...NOTHING })),
      '{"uid":"u","allowed":true,"auditAnnotations":null,"warnings":null}',
    );
    const patch = '[{"op":"remove","path":"/a"}]';
    assert.equal(
      JSON.stringify(admissionResponse('u', { allowed: true, patch, auditAnnotations: { a: 'b' }, warnings: ['w'] })),
      `{"uid":"u","allowed":true,"patchType":"JSONPatch","patch":"${btoa(patch)}","auditAnnotations":{"a":"b"},"warnings":["w"]}`,
    );
  });

  it('says why in its status', () => {
    const causes = [{ message: 'because', field: 'spec.policies.a' }];
    assert.deepEqual(admissionResponse('', { allowed: false, message: 'no', code: 403, causes, ...NOTHING }).status, {
      message: 'no',
      details: { causes },
      code: 403,
    });
    assert.deepEqual(admissionResponse('', { allowed: false, code: 500, ...NOTHING }).status, { code: 500 });
  });

  it('can be read as the verdict again', () => {
    const full = { allowed: false, message: 'é', code: 403, causes: [{ field: 'a' }], patch: '[]', ...NOTHING };
    for (const verdict of [full, { allowed: true, auditAnnotations: { a: 'b' }, warnings: ['w'] }]) {
      assert.deepEqual(verdictOf(admissionResponse('u', verdict)), verdict);
    }
  });

  it('has no code that HTTP does not have: API servers end the connection by one', () => {
    const denied = { allowed: false, message: 'no', ...NOTHING };
    assert.deepEqual(withHttpCode({ ...denied, code: 1_000 }), denied);
    assert.deepEqual(withHttpCode({ ...denied, code: 999 }), { ...denied, code: 999 });
  });
});
