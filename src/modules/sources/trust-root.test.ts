import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';

import { ModuleError } from '../reference/errors.ts';
import { TestSigstore } from '../testing/test-sigstore.ts';
import { parseTrustRoot } from './trust-root.ts';

type Mutable = Record<string, unknown>;

describe('parseTrustRoot', () => {
  let text = '';
  before(async () => {
    text = (await TestSigstore.create()).trustedRoot;
  });

  /** The trust root with a change. */
  function changed(change: (root: Mutable) => void): string {
    const root = JSON.parse(text) as Mutable;
    change(root);
    return JSON.stringify(root, undefined, '\t');
  }

  it('reads a TrustedRoot, and that of a ClientTrustConfig', () => {
    const { trustedRoot } = parseTrustRoot(text, 'trusted_root.json');
    assert.deepEqual(trustedRoot, JSON.parse(text));
    const mediaType = 'application/vnd.dev.sigstore.clienttrustconfig.v0.1+json';
    const config = JSON.stringify({ mediaType, trustedRoot: JSON.parse(text), signingConfig: {} });
    assert.deepEqual(parseTrustRoot(config, 'trust.json').trustedRoot, trustedRoot);
  });

  const mistakes: readonly [what: string, text: () => string, message: RegExp][] = [
    ['what is not JSON', () => 'tlogs: []', /^root\.json: not valid JSON/],
    ['a list', () => '[]', /expected a mapping, got a list/],
    ['another object', () => '{"kind":"ConfigMap"}', /is this a TrustedRoot or ClientTrustConfig of Sigstore/],
    [
      'no authorities',
      () => changed((root) => (root['certificateAuthorities'] = [])),
      /expected certificateAuthorities/,
    ],
    ['no log', () => changed((root) => (root['tlogs'] = [])), /tlogs or timestampAuthorities/],
    ['a log that is no object', () => changed((root) => (root['tlogs'] = [1])), /tlogs\.0: expected a mapping, got 1/],
    [
      'a broken key',
      () => changed((root) => (root['ctlogs'] = [{ publicKey: { rawBytes: 'AAAA' }, logId: { keyId: 'AAAA' } }])),
      /^root\.json:\d+:\d+: ctlogs\.0\.publicKey\.rawBytes: expected a public key/,
    ],
    [
      'a broken certificate',
      () =>
        changed((root) => (root['certificateAuthorities'] = [{ certChain: { certificates: [{ rawBytes: 'AAAA' }] } }])),
      /certificates\.0\.rawBytes: expected a certificate/,
    ],
    [
      'a time that is none',
      () =>
        changed((root) =>
          Object.assign((root['tlogs'] as [{ publicKey: Mutable }])[0].publicKey, { validFor: { start: 'x' } }),
        ),
      /validFor\.start: expected a time/,
    ],
    [
      'too many logs',
      () => changed((root) => (root['ctlogs'] = Array.from({ length: 101 }))),
      /expected at most 100 items/,
    ],
    ['too much text', () => ' '.repeat(1024 * 1024 + 1), /is too large/],
  ];
  for (const [what, written, message] of mistakes) {
    it(`refuses ${what}`, () => {
      assert.throws(
        () => parseTrustRoot(written(), 'root.json'),
        (error) => {
          assert.ok(error instanceof ModuleError);
          assert.equal(error.code, 'trust-root-invalid');
          assert.match(error.message, message);
          return true;
        },
      );
    });
  }
});
