import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { executionModeOf, moduleInterface } from './execution-mode.ts';
import type { ModuleInterface, StatedMode } from './execution-mode.ts';

const WAPC: ModuleInterface = {
  imports: [{ module: 'wapc', name: '__guest_request' }],
  functionExports: ['_start', '__guest_call'],
};
const WASI: ModuleInterface = {
  imports: [{ module: 'wasi_snapshot_preview1', name: 'fd_read' }],
  functionExports: ['_start'],
};
const REGO: ModuleInterface = {
  imports: [{ module: 'env', name: 'opa_abort' }],
  functionExports: ['opa_malloc', 'opa_eval', 'eval'],
};

describe('executionModeOf', () => {
  it('distinguishes waPC and WASI by their imports and exports', () => {
    assert.equal(executionModeOf(WAPC), 'kubewarden-wapc');
    assert.equal(executionModeOf(WASI), 'wasi');
  });

  it('takes what is stated when it fits', () => {
    assert.equal(executionModeOf(REGO, { metadata: 'gatekeeper' }), 'gatekeeper');
    assert.equal(executionModeOf(REGO, { chosen: 'opa' }), 'opa');
    assert.equal(executionModeOf(WASI, { metadata: 'wasi', chosen: 'wasi' }), 'wasi');
  });

  const refused: [string, ModuleInterface, StatedMode, RegExp][] = [
    ['Rego without a statement', REGO, {}, /-e opa, -e gatekeeper/],
    ['a contradiction between choice and metadata', REGO, { metadata: 'opa', chosen: 'gatekeeper' }, /says opa/],
    ['waPC that calls itself WASI', WAPC, { metadata: 'wasi' }, /expected a WASI module.*waPC/],
    ['WASI chosen as OPA', WASI, { chosen: 'opa' }, /expected a Rego module.*WASI/],
    [
      'a module that is two kinds',
      { imports: [], functionExports: ['__guest_call', 'opa_malloc', 'opa_eval'] },
      {},
      /both/,
    ],
    ['waPC without an entry', { ...WAPC, functionExports: ['_start'] }, {}, /__guest_call/],
    ['a library', { imports: [], functionExports: ['add'] }, {}, /none of them/],
  ];
  for (const [what, module, stated, says] of refused) {
    it(`refuses ${what}`, () => {
      assert.throws(() => executionModeOf(module, stated), { code: 'execution-mode-unclear', message: says });
    });
  }
});

describe('moduleInterface', () => {
  it('lists imports and exported functions', () => {
    // (module (import "m" "f" (func)) (memory (export "memory") 0) (export "g" (func 0)))
    const hex = '0061736d01000000010401600000020701016d016600000503010000070e02066d656d6f7279020001670000';
    assert.deepEqual(moduleInterface(Buffer.from(hex, 'hex')), {
      imports: [{ module: 'm', name: 'f' }],
      functionExports: ['g'],
    });
  });

  it('refuses what is not a valid module', () => {
    assert.throws(() => moduleInterface(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 9)), { code: 'not-wasm' });
  });
});
