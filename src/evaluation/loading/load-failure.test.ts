import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WasmError } from '../../wasm/index.ts';
import { loadFailure } from './load-failure.ts';

describe('A load', () => {
  it('is tried again when the system ended the trial of a module', () => {
    const { reason, transient } = loadFailure(new WasmError('trial-failed', 'function 0 …'));
    assert.deepEqual({ reason, transient }, { reason: 'InvalidModule', transient: true });
  });

  it('of a module that is too costly to compile is not tried again, and shows tenants no names of its functions', () => {
    const error = new WasmError('module-too-costly', 'function 3 "secret" has 9000 loops');
    const { transient, message } = loadFailure(error, true);
    assert.equal(transient, false);
    assert.match(message, /^the module cannot be used \(module-too-costly\): "portcullis inspect FILE"/);
  });
});
