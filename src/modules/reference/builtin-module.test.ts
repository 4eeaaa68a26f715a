import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinVersion, isBuiltin, parseBuiltin, PRODUCT_VERSION } from './builtin-module.ts';
import { ModuleError } from './errors.ts';

test('a builtin module is named by its scheme', () => {
  assert.equal(isBuiltin('builtin:cel'), true);
  assert.equal(isBuiltin('file:///builtin:cel'), false);
  assert.equal(parseBuiltin(' builtin:pod-security '), 'pod-security');
  assert.equal(builtinVersion('cel'), `builtin:cel@${PRODUCT_VERSION}`);
});

for (const [reference, message] of [
  [
    'builtin:',
    /expected builtin:cel or builtin:network-policy-support or builtin:pod-profile or builtin:pod-security, got builtin:$/,
  ],
  ['builtin:CEL', /got builtin:CEL/],
  ['builtin:cel@sha256:00', /takes no digest/],
] as const) {
  test(`${reference} is refused`, () => {
    assert.throws(
      () => parseBuiltin(reference),
      (error) => {
        assert.ok(error instanceof ModuleError);
        assert.equal(error.code, 'reference-invalid');
        assert.match(error.message, message);
        return true;
      },
    );
  });
}
