import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { certificateConditions, type CertificateState } from './certificate-conditions.ts';

describe('certificateConditions', () => {
  const state = (bundle: string | undefined, ...problems: CertificateState['problems']): CertificateState => ({
    isKnown: true,
    bundle: () => bundle,
    problems,
    subscribe: () => () => undefined,
  });
  const problem = { secret: 's', policyServer: 'a', reason: 'CertificateMissing', message: 'there is none' };
  const texts = (...args: Parameters<typeof certificateConditions>): readonly string[] =>
    certificateConditions(...args).map(({ type, status, reason }) => `${type} ${status} ${reason}`);

  it('report failed certificates on their PolicyServer only', () => {
    const wrong = state('pem', problem);
    assert.deepEqual(texts('a', wrong), [
      'CARootSecretReconciled True ReconciliationSucceeded',
      'CertSecretReconciled False CertificateMissing',
    ]);
    assert.match(certificateConditions('a', wrong)[1]?.message ?? '', /^Secret s: there is none$/);
    assert.equal(texts('b', wrong)[1], 'CertSecretReconciled True ReconciliationSucceeded');
  });

  it('report a failed CA on every PolicyServer, and no state of certificates that could not be read', () => {
    const authority = { secret: 'portcullis-ca', reason: 'CertificateNotWritten', message: 'forbidden' };
    assert.deepEqual(texts('a', state('pem', authority)), [
      'CARootSecretReconciled False CertificateNotWritten',
      'CertSecretReconciled True ReconciliationSucceeded',
    ]);
    assert.deepEqual(texts('a', state('pem', { ...authority, reason: 'CertificatesNotKept' })), [
      'CARootSecretReconciled False CertificatesNotKept',
    ]);
  });

  it('are Unknown when no trusted CA is found', () => {
    assert.equal(texts('a', state(undefined))[0], 'CARootSecretReconciled Unknown NotKnown');
  });

  it('are empty before the first check', () => {
    assert.deepEqual(texts('a', { ...state(undefined), isKnown: false }), []);
  });
});
