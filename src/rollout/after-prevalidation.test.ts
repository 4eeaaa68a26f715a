import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { afterPrevalidation, LONGEST_RETRY_MS } from './after-prevalidation.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const MODULES = [{ name: 'policy', module: 'registry://example.com/policy:v1', digest: `sha256:${'a'.repeat(64)}` }];

describe('the status of a revision after pre-validation', () => {
  const transient = { ok: false, reason: 'FetchFailed', message: 'no route', isTransient: true } as const;

  it('is Validated with pinned modules and warnings after a success, without earlier failures', () => {
    const warnings = ['the module changes objects'];
    assert.deepEqual(afterPrevalidation({ attempts: 2 }, { ok: true, modules: MODULES, warnings }, NOW), {
      state: 'Validated',
      reason: '',
      message: '',
      modules: MODULES,
      warnings,
      attempts: 3,
      nextRetry: undefined,
      triedParameters: undefined,
    });
  });

  it('is Failed with reason and message after a permanent failure, without a retry', () => {
    const result = { ok: false, reason: 'InvalidSettings', message: 'expected a list', isTransient: false } as const;
    assert.deepEqual(afterPrevalidation({ attempts: 0 }, result, NOW), {
      state: 'Failed',
      reason: 'InvalidSettings',
      message: 'expected a list',
      modules: [],
      warnings: [],
      attempts: 1,
      nextRetry: undefined,
      triedParameters: undefined,
    });
  });

  it('is tried again for other parameters, and then after delays that double', () => {
    const result = {
      ok: false,
      reason: 'InvalidParameters',
      message: 'no',
      isTransient: false,
      parameters: 'x',
    } as const;
    const waits = [0, 1, 1_000_000].map((attempts) => {
      const { state, nextRetry, triedParameters } = afterPrevalidation({ attempts }, result, NOW, () => 0);
      assert.deepEqual([state, triedParameters], ['Failed', 'x']);
      return (nextRetry ?? 0) - NOW;
    });
    assert.deepEqual(waits, [1_000, 2_000, LONGEST_RETRY_MS]);
  });

  it('stays Candidate after a transient failure, with delays that double up to a limit', () => {
    const waits = [0, 1, 2, 8, 9, 1_000_000].map((attempts) => {
      const { state, nextRetry } = afterPrevalidation({ attempts }, transient, NOW, () => 0);
      assert.equal(state, 'Candidate');
      return (nextRetry ?? 0) - NOW;
    });
    assert.deepEqual(waits, [1_000, 2_000, 4_000, 256_000, LONGEST_RETRY_MS, LONGEST_RETRY_MS]);
  });

  it('spreads retries over half of the delay', () => {
    const { nextRetry = 0 } = afterPrevalidation({ attempts: 2 }, transient, NOW, () => 0.5);
    assert.equal(nextRetry - NOW, 3_000);
    const drawn = afterPrevalidation({ attempts: 2 }, transient, NOW).nextRetry ?? 0;
    assert.ok(drawn - NOW >= 2_000 && drawn - NOW <= 4_000, String(drawn - NOW));
  });
});
