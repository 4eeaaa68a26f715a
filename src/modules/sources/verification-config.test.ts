import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';

import { ModuleError } from '../reference/errors.ts';
import { verificationOf } from './verification.ts';
import { parsePublicKey, parseVerification } from './verification-config.ts';

const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' });

describe('parseVerification', () => {
  it('reads all kinds of signatures', () => {
    const text = JSON.stringify({
      apiVersion: 'v1',
      allOf: [
        { kind: 'githubAction', owner: 'kubewarden' },
        { kind: 'githubAction', owner: 'kubewarden', repo: 'policies', annotations: { env: 'prod' } },
      ],
      anyOf: {
        minimumMatches: 2,
        signatures: [
          { kind: 'pubKey', owner: 'alice', key: KEY, annotations: { env: 'prod' } },
          { kind: 'genericIssuer', issuer: 'https://issuer.example.com', subject: { equal: 'alice@example.com' } },
          { kind: 'genericIssuer', issuer: 'https://i.example.com', subject: { urlPrefix: 'https://Example.com/a' } },
        ],
      },
    });
    assert.deepEqual(parseVerification(text, 'verification.yml'), {
      allOf: [
        { kind: 'githubAction', owner: 'kubewarden' },
        { kind: 'githubAction', owner: 'kubewarden', repo: 'policies', annotations: { env: 'prod' } },
      ],
      anyOf: {
        minimumMatches: 2,
        signatures: [
          { kind: 'pubKey', owner: 'alice', key: KEY, annotations: { env: 'prod' } },
          { kind: 'genericIssuer', issuer: 'https://issuer.example.com', subject: { equal: 'alice@example.com' } },
          { kind: 'genericIssuer', issuer: 'https://i.example.com', subject: { urlPrefix: 'https://example.com/a/' } },
        ],
      },
    });
  });

  it('requires one signature of anyOf by default', () => {
    const text = 'apiVersion: v1\nanyOf:\n  signatures:\n    - kind: githubAction\n      owner: kubewarden\n';
    assert.equal(parseVerification(text, 'verification.yml').anyOf?.minimumMatches, 1);
  });

  const signature = (lines: string): string => `apiVersion: v1\nallOf:\n  - ${lines}\n`;
  const mistakes: readonly [what: string, text: string, message: RegExp][] = [
    ['an empty file', '', /^verification\.yml:1:1: expected a mapping, got nothing/],
    ['what is not YAML', 'apiVersion: [', /^verification\.yml:\d+:\d+: not valid YAML/],
    ['two documents', 'apiVersion: v1\n---\napiVersion: v1\n', /expected one document/],
    ['another version', 'apiVersion: v2\n', /^verification\.yml:1:1: apiVersion: expected v1, got "v2"/],
    ['no signature', 'apiVersion: v1\nallOf: []\n', /expected at least one signature in allOf or anyOf/],
    [
      'an unknown field',
      'apiVersion: v1\nnoneOf: []\n',
      /:2:1: noneOf: unknown key: expected apiVersion, allOf, anyOf/,
    ],
    [
      'an empty anyOf',
      'apiVersion: v1\nanyOf: {signatures: []}\n',
      /anyOf\.signatures: expected at least one signature/,
    ],
    [
      'zero matches',
      anyOf('0'),
      /anyOf\.minimumMatches: expected a number from 1 to 1, the number of signatures, got 0/,
    ],
    ['more matches than signatures', anyOf('2'), /expected a number from 1 to 1, the number of signatures, got 2/],
    ['half a match', anyOf('0.5'), /anyOf\.minimumMatches: expected a number, got 0\.5/],
    ['another kind', signature('kind: pgp'), /^verification\.yml:3:5: allOf\.0\.kind: expected pubKey, genericIssuer/],
    ['no kind', signature('owner: x'), /allOf\.0\.kind: .*got nothing/],
    ['a key that is none', signature('{kind: pubKey, key: x}'), /allOf\.0\.key: expected a PEM public key/],
    ['a field of another kind', signature('{kind: pubKey, repo: x}'), /allOf\.0\.repo: unknown key/],
    ['no owner', signature('kind: githubAction'), /allOf\.0\.owner: expected a string, got nothing/],
    [
      'an owner with a slash',
      signature('{kind: githubAction, owner: a/b}'),
      /owner: expected the name of a GitHub user/,
    ],
    ['a repository with an owner', signature('{kind: githubAction, owner: a, repo: a/b}'), /repo: .*without its owner/],
    ['a repository that is a path', signature('{kind: githubAction, owner: a, repo: ..}'), /repo: .*without its owner/],
    ['no subject', signature('{kind: genericIssuer, issuer: x}'), /allOf\.0\.subject: expected a mapping/],
    ['no kind of subject', generic('{}'), /subject: expected either equal or urlPrefix/],
    ['two subjects', generic('{equal: a, urlPrefix: "https://a"}'), /subject: expected either equal or urlPrefix/],
    ['a prefix that is no URL', generic('{urlPrefix: example.com}'), /urlPrefix: expected the URL/],
    ['a prefix with a query', generic('{urlPrefix: "https://example.com/?a"}'), /urlPrefix: expected the URL/],
    [
      'an annotation that is no text',
      signature('{kind: githubAction, owner: a, annotations: {b: 1}}'),
      /annotations\.b/,
    ],
    [
      'the same signature twice',
      'apiVersion: v1\nallOf: [&a {kind: githubAction, owner: a}, *a]\n',
      /allOf\.1: this signature is required twice/,
    ],
    [
      'too many signatures',
      signature('{}').repeat(1).replace('{}', '&a {kind: x}') + '  - *a\n'.repeat(100),
      /at most 100/,
    ],
    ['too much text', `# ${'x'.repeat(1024 * 1024)}`, /is too large/],
  ];
  for (const [what, text, message] of mistakes) {
    it(`refuses ${what}`, () => {
      assert.throws(() => parseVerification(text, 'verification.yml'), hasCode('verification-invalid', message));
    });
  }

  function anyOf(minimumMatches: string): string {
    return `apiVersion: v1\nanyOf: {minimumMatches: ${minimumMatches}, signatures: [{kind: githubAction, owner: a}]}\n`;
  }

  function generic(subject: string): string {
    return signature(`{kind: genericIssuer, issuer: x, subject: ${subject}}`);
  }
});

describe('parsePublicKey', () => {
  const pem = (key: ReturnType<typeof generateKeyPairSync>['publicKey']): string =>
    key.export({ type: 'spki', format: 'pem' }).toString();

  it('accepts the keys that cosign makes', () => {
    for (const namedCurve of ['P-256', 'P-384', 'P-521']) {
      const key = pem(generateKeyPairSync('ec', { namedCurve }).publicKey);
      assert.equal(parsePublicKey(`\n${key}\n`), key);
    }
    assert.ok(parsePublicKey(pem(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey)));
    assert.ok(parsePublicKey(pem(generateKeyPairSync('ed25519').publicKey)));
  });

  it('refuses other keys, private keys and certificates', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    assert.equal(parsePublicKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()), undefined);
    assert.equal(parsePublicKey(pem(publicKey) + pem(publicKey)), undefined);
    assert.equal(parsePublicKey(pem(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey)), undefined);
    assert.equal(parsePublicKey(pem(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey)), undefined);
    assert.equal(parsePublicKey(pem(generateKeyPairSync('x25519').publicKey)), undefined);
    assert.equal(parsePublicKey(pem(publicKey).replace('M', '!')), undefined);
  });
});

describe('verificationOf', () => {
  it('has the same id for what means the same', () => {
    const yaml = 'allOf:\n  - owner: a\n    kind: githubAction\napiVersion: v1\n';
    const json = '{"apiVersion":"v1","allOf":[{"kind":"githubAction","owner":"a"}]}';
    const [a, b] = [yaml, json].map((text) => verificationOf(parseVerification(text, 'verification.yml')));
    assert.equal(a?.id, b?.id);
    assert.match(a?.id ?? '', /^sha256:[0-9a-f]{64}$/);
  });

  it('has another id for another configuration, and for another trust root', () => {
    const config = { allOf: [{ kind: 'githubAction', owner: 'a' }] } as const;
    const ids = [
      verificationOf(config),
      verificationOf({ allOf: [{ kind: 'githubAction', owner: 'b' }] }),
      verificationOf(config, { trustedRoot: {} }),
      verificationOf(config, { trustedRoot: { tlogs: [] } }),
    ].map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
  });
});

function hasCode(code: string, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof ModuleError);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };
}
