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

  it('says what is wrong with the certificates of a PolicyServer, and not of another', () => {
    const wrong = state('pem', problem);
    assert.deepEqual(texts('a', wrong), [
      'CARootSecretReconciled True ReconciliationSucceeded',
      'CertSecretReconciled False CertificateMissing',
    ]);
    assert.match(certificateConditions('a', wrong)[1]?.message ?? '', /^Secret s: there is none$/);
    assert.equal(texts('b', wrong)[1], 'CertSecretReconciled True ReconciliationSucceeded');
  });

  it('says on every PolicyServer what is wrong with the CA, and nothing of certificates that nobody could read', () => {
    const authority = { secret: 'portcullis-ca', reason: 'CertificateNotWritten', message: 'forbidden' };
    assert.deepEqual(texts('a', state('pem', authority)), [
      'CARootSecretReconciled False CertificateNotWritten',
      'CertSecretReconciled True ReconciliationSucceeded',
    ]);
    assert.deepEqual(texts('a', state('pem', { ...authority, reason: 'CertificatesNotKept' })), [
      'CARootSecretReconciled False CertificatesNotKept',
    ]);
  });

  it('does not claim to know which CAs are trusted when none is found', () => {
    assert.equal(texts('a', state(undefined))[0], 'CARootSecretReconciled Unknown NotKnown');
  });

  it('says nothing before anybody has looked', () => {
    assert.deepEqual(texts('a', { ...state(undefined), isKnown: false }), []);
  });
});
