import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isJsonObject, type JsonObject } from '../../resources/index.ts';
import type { OwnKindsReview } from './own-kinds-review.ts';
import { OwnKindsRules } from './own-kinds-rules.ts';
import { conditions, CONTROLLER, judged, object, review, RULE, SPEC } from './testing/judgement.ts';

describe('new objects of our kinds', () => {
  it('are refused with a status as API servers have it', () => {
    const { error } = new OwnKindsRules({ controllerUser: CONTROLLER }).judge(
      review('cap', object('cap', { ...SPEC, sideEffects: 'Some' })),
    );
    assert.deepEqual(error?.toStatus(), {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message:
        'ClusterAdmissionPolicy.policies.kubewarden.io "one" is invalid: spec.sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun" [side-effects]',
      reason: 'Invalid',
      details: {
        name: 'one',
        group: 'policies.kubewarden.io',
        kind: 'ClusterAdmissionPolicy',
        causes: [
          {
            reason: 'FieldValueNotSupported',
            message: 'Unsupported value: "Some": supported values: "None", "NoneOnDryRun" [side-effects]',
            field: 'spec.sideEffects',
          },
        ],
      },
      code: 422,
    });
  });

  it('make no answer that is longer than anybody reads', () => {
    const long = `'${'x'.repeat(90_000)}'`;
    const many = Array.from({ length: 128 }, () => ({ ...RULE, apiGroups: ['*', ''], resources: ['', ''] }));
    const spec = { ...conditions(...Array.from({ length: 64 }, () => long)), rules: many };
    const { error } = new OwnKindsRules({ controllerUser: CONTROLLER }).judge(review('cap', object('cap', spec)));
    assert.equal(error?.details?.causes?.length, 101);
    assert.match(error?.details?.causes?.at(-1)?.message ?? '', /more problems: mend these first/);
    assert.ok(JSON.stringify(error?.toStatus()).length < 1_000_000);
  });
});

describe('changes of objects of our kinds', () => {
  const broken = { ...SPEC, module: 'nothing', settings: { a: [1] } };

  it('are taken when the spec stays as it was, whatever it is', () => {
    const old = object('cap', broken);
    const labelled = object('cap', broken, { labels: { a: 'b' } });
    assert.deepEqual(judged(review('cap', labelled, old)).errors, []);
    assert.deepEqual(judged(review('cap', { ...old, status: { phase: 'Error' } }, old)).errors, []);
  });

  it('are judged when the spec differs', () => {
    const old = object('cap', { ...SPEC, mode: 'monitor' });
    assert.deepEqual(judged(review('cap', object('cap', broken), old)).errors, ['spec.module [module-reference]']);
  });

  it('may leave wrong what was wrong before, and make nothing else wrong', () => {
    const twice = { ...conditions('1 +', '2 +'), sideEffects: 'Some' };
    const old = object('cap', twice);
    const mended = judged(review('cap', object('cap', { ...twice, sideEffects: 'None' }), old));
    const conditionsLeft = [0, 1].map((index) => `spec.matchConditions[${index}].expression [wrong-before]`);
    assert.deepEqual([mended.errors, mended.warnings], [[], conditionsLeft]);
    const worse = judged(review('cap', object('cap', { ...twice, ...conditions('1 +', '3 +') }), old));
    assert.deepEqual(worse.errors, ['spec.matchConditions[1].expression [condition-expression]']);
    assert.deepEqual(worse.warnings, [
      'spec.matchConditions[0].expression [wrong-before]',
      'spec.sideEffects [wrong-before]',
    ]);
  });

  it('are taken when the object is being deleted, and deletions always', () => {
    const leaving = { deletionTimestamp: '2026-01-01T00:00:00Z' };
    const next = object('cap', { ...broken, mode: 'monitor' }, leaving);
    assert.deepEqual(judged(review('cap', next, object('cap', broken, leaving))).errors, []);
    assert.deepEqual(judged(review('cap', next, next, { operation: 'DELETE' })).errors, []);
  });

  it('are taken when they are of the status', () => {
    const next = object('cap', broken);
    assert.deepEqual(judged(review('cap', next, object('cap', SPEC), { subresource: 'status' })).errors, []);
  });

  it('are taken when they are of the controller', () => {
    const request = review('cap', object('cap', broken), object('cap', SPEC), { username: CONTROLLER });
    assert.deepEqual(judged(request).errors, []);
  });

  it('are taken when they are of another kind', () => {
    assert.deepEqual(judged(review('psr', object('psr', {}))).errors, []);
    assert.deepEqual(judged(review('cap', object('cap', {}), undefined, { kind: 'Pod', group: '' })).errors, []);
  });
});

describe('revisions', () => {
  const label = (server: string): object => ({ labels: { 'portcullis.dev/policy-server': server } });
  const old = object('prev', { revision: 1, snapshot: { mode: 'protect' } }, label('default'));
  const refused = (next: JsonObject, more: Partial<OwnKindsReview> = {}): readonly string[] =>
    judged(review('prev', next, old, more)).errors;

  it('are made by the controller only', () => {
    assert.deepEqual(judged(review('prev', old)).errors, ['spec [revision-writer]']);
    assert.deepEqual(judged(review('prev', old, undefined, { username: CONTROLLER })).errors, []);
    const { error } = new OwnKindsRules({ controllerUser: CONTROLLER }).judge(review('prev', old));
    assert.deepEqual([error?.code, error?.reason], [403, 'Forbidden']);
  });

  it('are changed by the controller only', () => {
    const next = object('prev', { revision: 1, snapshot: { mode: 'monitor' }, rollbackOf: 1 }, label('default'));
    assert.deepEqual(refused(next), ['spec [revision-writer]']);
    const serving = { ...old, status: { state: 'Serving' } };
    assert.deepEqual(refused(serving, { subresource: 'status' }), ['status [revision-writer]']);
    assert.deepEqual(refused(serving, { subresource: 'status', username: CONTROLLER }), []);
    const moved = object('prev', { revision: 1, snapshot: { mode: 'protect' } }, label('mine'));
    assert.deepEqual(refused(moved), ['metadata.labels[portcullis.dev/policy-server] [revision-writer]']);
  });

  it('are cleaned up by anybody', () => {
    const { metadata } = old;
    assert.ok(isJsonObject(metadata));
    assert.deepEqual(refused({ ...old, metadata: { ...metadata, finalizers: [], annotations: { a: 'b' } } }), []);
    assert.deepEqual(refused(old, { operation: 'DELETE' }), []);
  });
});
