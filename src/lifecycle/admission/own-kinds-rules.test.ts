import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isJsonObject, type JsonObject } from '../../resources/index.ts';
import type { OwnKindsReview } from './own-kinds-review.ts';
import { OwnKindsRules } from './own-kinds-rules.ts';
import { conditions, CONTROLLER, validated, object, review, RULE, SPEC } from './testing/validation-cases.ts';

describe('new objects of our kinds', () => {
  it('are rejected with a Status as from an API server', () => {
    const { error } = new OwnKindsRules({ controllerUser: CONTROLLER }).validate(
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

  it('get a response of limited length', () => {
    const long = `'${'x'.repeat(90_000)}'`;
    const many = Array.from({ length: 128 }, () => ({ ...RULE, apiGroups: ['*', ''], resources: ['', ''] }));
    const spec = { ...conditions(...Array.from({ length: 64 }, () => long)), rules: many };
    const { error } = new OwnKindsRules({ controllerUser: CONTROLLER }).validate(review('cap', object('cap', spec)));
    assert.equal(error?.details?.causes?.length, 101);
    assert.match(error?.details?.causes?.at(-1)?.message ?? '', /more problems: fix these first/);
    assert.ok(JSON.stringify(error?.toStatus()).length < 1_000_000);
  });
});

describe('changes of objects of our kinds', () => {
  const broken = { ...SPEC, module: 'nothing', settings: { a: [1] } };

  it('are accepted when the spec does not change, even if it is invalid', () => {
    const old = object('cap', broken);
    const labelled = object('cap', broken, { labels: { a: 'b' } });
    assert.deepEqual(validated(review('cap', labelled, old)).errors, []);
    assert.deepEqual(validated(review('cap', { ...old, status: { phase: 'Error' } }, old)).errors, []);
  });

  it('are validated when the spec changes', () => {
    const old = object('cap', { ...SPEC, mode: 'monitor' });
    assert.deepEqual(validated(review('cap', object('cap', broken), old)).errors, ['spec.module [module-reference]']);
  });

  it('are rejected when they change the mode from protect to monitor, but for the controller', () => {
    const [protect, monitor] = [SPEC, { ...SPEC, mode: 'monitor' }].map((spec) =>
      object('cap', { mode: 'protect', ...spec }),
    );
    assert.ok(protect !== undefined && monitor !== undefined);
    const refused = validated(review('cap', monitor, protect));
    assert.deepEqual(refused.errors, ['spec.mode [mode-change]']);
    assert.match(refused.text, /field cannot transition from protect to monitor\. Recreate instead, or .*rollout undo/);
    assert.deepEqual(validated(review('cap', protect, monitor)).errors, []);
    assert.deepEqual(validated(review('cap', monitor, monitor)).errors, []);
    assert.deepEqual(validated(review('cap', monitor, protect, { username: CONTROLLER })).errors, []);
  });

  it('are rejected when they change the PolicyServer, whatever schema the cluster serves', () => {
    const on = (policyServer?: string, rest: object = {}): JsonObject =>
      object('cap', { ...SPEC, ...(policyServer === undefined ? {} : { policyServer }), ...rest });
    for (const [before, after] of [
      ['default', 'other'],
      [undefined, 'other'],
      ['other', undefined],
    ]) {
      const refused = validated(review('cap', on(after, { timeoutSeconds: 5 }), on(before)));
      assert.deepEqual(refused.errors, ['spec.policyServer [policy-server-change]']);
      assert.match(refused.text, /Apply the policy under another name, wait until that one is enforced, and delete/);
    }
    assert.deepEqual(validated(review('cap', on('default'), on())).errors, []);
    assert.deepEqual(validated(review('cap', on('other', { timeoutSeconds: 5 }), on('other'))).errors, []);
  });

  it('keep a policy that lacks a right writable, and refuse to take a right away', () => {
    const settings = {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      paramRef: { name: 'a', parameterNotFoundAction: 'Deny' },
      validations: [{ expression: 'true' }],
    };
    const without = { ...SPEC, module: 'builtin:cel', settings };
    const stored = object('cap', without);
    const other = validated(review('cap', object('cap', { ...without, timeoutSeconds: 5 }), stored));
    assert.deepEqual([other.errors, other.warnings], [[], ['spec.settings.paramKind [wrong-before]']]);
    assert.deepEqual(validated(review('cap', object('cap', without, { finalizers: [] }), stored)).errors, []);
    const complete = object('cap', { ...without, contextAwareResources: [settings.paramKind] });
    const worse = validated(review('cap', stored, complete));
    assert.deepEqual(worse.errors, ['spec.settings.paramKind [settings-rights]']);
  });

  it('get warnings for old errors, and errors for new ones', () => {
    const twice = { ...conditions('1 +', '2 +'), sideEffects: 'Some' };
    const old = object('cap', twice);
    const fixed = validated(review('cap', object('cap', { ...twice, sideEffects: 'None' }), old));
    const conditionsLeft = [0, 1].map((index) => `spec.matchConditions[${index}].expression [wrong-before]`);
    assert.deepEqual([fixed.errors, fixed.warnings], [[], conditionsLeft]);
    const worse = validated(review('cap', object('cap', { ...twice, ...conditions('1 +', '3 +') }), old));
    assert.deepEqual(worse.errors, ['spec.matchConditions[1].expression [condition-expression]']);
    assert.deepEqual(worse.warnings, [
      'spec.matchConditions[0].expression [wrong-before]',
      'spec.sideEffects [wrong-before]',
    ]);
  });

  it('are accepted when the object is deleted or being deleted', () => {
    const leaving = { deletionTimestamp: '2026-01-01T00:00:00Z' };
    const next = object('cap', { ...broken, mode: 'monitor' }, leaving);
    assert.deepEqual(validated(review('cap', next, object('cap', broken, leaving))).errors, []);
    assert.deepEqual(validated(review('cap', next, next, { operation: 'DELETE' })).errors, []);
  });

  it('are accepted when they are of the status', () => {
    const next = object('cap', broken);
    assert.deepEqual(validated(review('cap', next, object('cap', SPEC), { subresource: 'status' })).errors, []);
  });

  it('are accepted when the controller makes them', () => {
    const request = review('cap', object('cap', broken), object('cap', SPEC), { username: CONTROLLER });
    assert.deepEqual(validated(request).errors, []);
  });

  it('are accepted when they are of another kind', () => {
    assert.deepEqual(validated(review('psr', object('psr', {}))).errors, []);
    assert.deepEqual(validated(review('cap', object('cap', {}), undefined, { kind: 'Pod', group: '' })).errors, []);
  });
});

describe('revisions', () => {
  const label = (server: string): object => ({ labels: { 'portcullis.dev/policy-server': server } });
  const old = object('prev', { revision: 1, snapshot: { mode: 'protect' } }, label('default'));
  const refused = (next: JsonObject, more: Partial<OwnKindsReview> = {}): readonly string[] =>
    validated(review('prev', next, old, more)).errors;

  it('are created by the controller only', () => {
    assert.deepEqual(validated(review('prev', old)).errors, ['spec [revision-writer]']);
    assert.deepEqual(validated(review('prev', old, undefined, { username: CONTROLLER })).errors, []);
    const { error } = new OwnKindsRules({ controllerUser: CONTROLLER }).validate(review('prev', old));
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

  it('can be deleted, and their finalizers removed, by other users', () => {
    const { metadata } = old;
    assert.ok(isJsonObject(metadata));
    assert.deepEqual(refused({ ...old, metadata: { ...metadata, finalizers: [], annotations: { a: 'b' } } }), []);
    assert.deepEqual(refused(old, { operation: 'DELETE' }), []);
  });
});
