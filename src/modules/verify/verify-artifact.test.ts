import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import type { Digest } from '../reference/digest.ts';
import { ModuleError } from '../reference/errors.ts';
import { HttpTransfer } from '../http/http-transfer.ts';
import { RegistryClient } from '../oci/registry-client.ts';
import { DEFAULT_SOURCES } from '../sources/sources.ts';
import { testModule } from '../testing/test-module.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { type CertificateOptions, TestSigstore } from '../testing/test-sigstore.ts';
import {
  type ArtifactSigner,
  attachBundles,
  attachLayers,
  INDEX_TYPE,
  keySigner,
  messageBundle,
  signatureLayer,
  statementBundle,
} from '../testing/test-signer.ts';
import { parseTrustRoot, type TrustRoot } from '../sources/trust-root.ts';
import { verificationOf } from '../sources/verification.ts';
import type { SignatureRequirement, VerificationConfig } from '../sources/verification-config.ts';
import { verifyArtifact } from './index.ts';

const GITHUB = 'https://token.actions.githubusercontent.com';
const WORKFLOW = 'https://github.com/kubewarden/policies/.github/workflows/release.yml@refs/tags/v1.0.0';
const ENTRY = 'dev.sigstore.cosign/bundle';
const KUBEWARDEN: SignatureRequirement = { kind: 'githubAction', owner: 'kubewarden' };

let registry: TestRegistry;
let sigstore: TestSigstore;
let trustRoot: TrustRoot;
let count = 0;

before(async () => {
  registry = await TestRegistry.start();
  sigstore = await TestSigstore.create();
  trustRoot = parseTrustRoot(sigstore.trustedRoot, 'trusted_root.json');
});
after(async () => await registry[Symbol.asyncDispose]());

interface PushedArtifact {
  readonly repository: string;
  readonly digest: Digest;
}

/** Pushes a new artifact. */
function push(): PushedArtifact {
  count++;
  const repository = `policies/p${count}`;
  return { repository, digest: registry.push(repository, 'v1', testModule(`module ${count}`)).digest as Digest };
}

/** Pushes a new artifact with a signature in the older layout. */
function signedBy(signer: ArtifactSigner): PushedArtifact {
  const artifact = push();
  attachLayers(registry, artifact.repository, artifact.digest, [signatureLayer(signer, artifact.digest)]);
  return artifact;
}

async function verifyWithout(
  artifact: PushedArtifact,
  config: VerificationConfig | SignatureRequirement,
): Promise<void> {
  await verify(artifact, config, null);
}

async function verify(
  { repository, digest }: PushedArtifact,
  config: VerificationConfig | SignatureRequirement,
  root: TrustRoot | null = trustRoot,
): Promise<void> {
  const verification = verificationOf('kind' in config ? { allOf: [config] } : config, root ?? undefined);
  await HttpTransfer.run('the module', { sources: DEFAULT_SOURCES }, async (transfer) => {
    const { origin } = registry.server;
    const source = new RegistryClient({ transfer, shown: 'the module', origin, repository, credentials: undefined });
    await verifyArtifact(source, digest, 'the module', verification);
  });
}

function refused(code: string, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof ModuleError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  };
}

const github = async (options: Partial<CertificateOptions> = {}): Promise<ArtifactSigner> =>
  await sigstore.signer({ issuer: GITHUB, subjects: [WORKFLOW], ...options });

describe('verifyArtifact', () => {
  it('refuses an artifact without signatures', async () => {
    await assert.rejects(
      verify(push(), KUBEWARDEN),
      refused('signature-missing', /the module \(sha256:.* has no signature/),
    );
  });

  const keys = [
    ['P-256', 'sha256'],
    ['P-384', 'sha256'],
    ['P-384', 'sha384'],
    ['P-521', 'sha512'],
    ['rsa', 'sha256'],
    ['ed25519', null],
  ] as const;
  for (const [type, hash] of keys) {
    it(`accepts signatures of ${type} keys${hash === null ? '' : ` with ${hash}`}, without a trust root`, async () => {
      const signer = keySigner(type, hash);
      const requirement = { kind: 'pubKey', key: signer.publicKey } as const;
      const layered = push();
      attachLayers(registry, layered.repository, layered.digest, [signatureLayer(signer, layered.digest)]);
      await verify(layered, requirement, null);
      const bundled = push();
      attachBundles(registry, bundled.repository, bundled.digest, [statementBundle(signer, bundled.digest)]);
      await verify(bundled, requirement, null);
      await assert.rejects(
        verify(bundled, { kind: 'pubKey', key: keySigner(type).publicKey }, null),
        refused('signature-invalid', /signature [0-9a-f]{12} is not of a required key/),
      );
    });
  }

  it('accepts keyless signatures in the older layout', async () => {
    const artifact = push();
    attachLayers(registry, artifact.repository, artifact.digest, [signatureLayer(await github(), artifact.digest)]);
    await verify(artifact, KUBEWARDEN);
  });

  it('accepts keyless statements in bundles', async () => {
    const artifact = push();
    attachBundles(registry, artifact.repository, artifact.digest, [statementBundle(await github(), artifact.digest)]);
    await verify(artifact, KUBEWARDEN);
  });

  it('accepts keyless signatures of the manifest in bundles', async () => {
    const artifact = push();
    const response = await fetch(`${registry.server.origin}/v2/${artifact.repository}/manifests/v1`);
    const manifest = Buffer.from(await response.arrayBuffer());
    attachBundles(registry, artifact.repository, artifact.digest, [messageBundle(await github(), manifest)]);
    await verify(artifact, KUBEWARDEN);
  });

  it('accepts the issuer in the extension of before 2023', async () => {
    const artifact = signedBy(await github({ hasOldIssuer: true }));
    await verify(artifact, KUBEWARDEN);
  });

  it('refuses a keyless signature without a trust root', async () => {
    const artifact = signedBy(await github());
    await assert.rejects(
      verifyWithout(artifact, KUBEWARDEN),
      refused('trust-root-unavailable', /without a trust root/),
    );
    await assert.rejects(verifyWithout(push(), KUBEWARDEN), refused('signature-missing', /no signature/));
  });

  it('refuses the certificate of another authority', async () => {
    const other = await TestSigstore.create();
    const artifact = signedBy(await other.signer({ issuer: GITHUB, subjects: [WORKFLOW] }));
    await assert.rejects(
      verify(artifact, KUBEWARDEN),
      refused('signature-invalid', /signature [0-9a-f]{12} is not trusted: /),
    );
  });

  it('requires that the certificate was valid when the log saw the signature', async () => {
    const notBefore = new Date(Date.now() - 30 * 60_000);
    const inTime = signedBy(await github({ notBefore, signedAt: new Date(notBefore.getTime() + 5 * 60_000) }));
    await verify(inTime, KUBEWARDEN);
    for (const signedAt of [new Date(), new Date(notBefore.getTime() - 60_000)]) {
      const artifact = signedBy(await github({ notBefore, signedAt }));
      await assert.rejects(verify(artifact, KUBEWARDEN), refused('signature-invalid', /not valid or expired/));
    }
  });

  const defects: readonly [what: string, options: Partial<CertificateOptions>, message: RegExp][] = [
    ['that no certificate log has seen', { isLogged: false }, /expected 1 SCTs, got 0/],
    ['that is not for code signing', { extendedKeyUsage: '1.3.6.1.5.5.7.3.1' }, /not for code signing/],
    ['with two subjects', { subjects: ['https://github.com/evil/x/y', WORKFLOW] }, /exactly one URL or e-mail/],
  ];
  for (const [what, options, message] of defects) {
    it(`refuses a certificate ${what}`, async () => {
      await assert.rejects(verify(signedBy(await github(options)), KUBEWARDEN), refused('signature-invalid', message));
    });
  }

  it('refuses a certificate that no transparency log has seen, also in bundles', async () => {
    const signer = await github();
    const artifact = push();
    const { claim, annotations } = signatureLayer(signer, artifact.digest);
    const { 'dev.sigstore.cosign/bundle': _entry, ...rest } = annotations;
    attachLayers(registry, artifact.repository, artifact.digest, [{ claim, annotations: rest }]);
    await assert.rejects(verify(artifact, KUBEWARDEN), refused('signature-invalid', /expected 1 timestamps, got 0/));
    const bundled = push();
    const { logEntry: _none, ...unlogged } = signer;
    attachBundles(registry, bundled.repository, bundled.digest, [statementBundle(unlogged, bundled.digest)]);
    await assert.rejects(verify(bundled, KUBEWARDEN), refused('signature-invalid', /expected 1 timestamps, got 0/));
  });

  it('refuses the log entry of another signature, and an entry of another log', async () => {
    const signer = await github();
    const artifact = push();
    const [good, other] = [signatureLayer(signer, artifact.digest), signatureLayer(signer, push().digest)];
    const swapped = { ...good.annotations, [ENTRY]: other.annotations[ENTRY] ?? '' };
    attachLayers(registry, artifact.repository, artifact.digest, [{ claim: good.claim, annotations: swapped }]);
    await assert.rejects(verify(artifact, KUBEWARDEN), refused('signature-invalid', /signature mismatch/));
    const { logEntry } = await (await TestSigstore.create()).signer({ issuer: GITHUB, subjects: [WORKFLOW] });
    assert.ok(logEntry);
    const elsewhere = signedBy({ ...signer, logEntry });
    await assert.rejects(verify(elsewhere, KUBEWARDEN), refused('signature-invalid', /inclusion promise could not/));
  });

  it('refuses a log entry whose time was changed', async () => {
    const artifact = push();
    const { claim, annotations } = signatureLayer(await github(), artifact.digest);
    const changed = (annotations[ENTRY] ?? '').replace(
      /"integratedTime":(\d+)/,
      (_all, time) => `"integratedTime":${Number(time) - 5}`,
    );
    attachLayers(registry, artifact.repository, artifact.digest, [
      { claim, annotations: { ...annotations, [ENTRY]: changed } },
    ]);
    await assert.rejects(verify(artifact, KUBEWARDEN), refused('signature-invalid', /inclusion promise could not/));
  });

  it('refuses signatures of another artifact', async () => {
    const signer = await github();
    const [victim, other] = [push(), push()];
    const { repository, digest } = victim;
    attachLayers(registry, repository, digest, [signatureLayer(signer, other.digest)]);
    attachBundles(registry, repository, digest, [
      statementBundle(signer, other.digest),
      messageBundle(signer, Buffer.from('another manifest')),
    ]);
    await assert.rejects(
      verify(victim, KUBEWARDEN),
      refused('signature-invalid', /(?:signature [0-9a-f]{12} is for another artifact(?:; )?){3}$/),
    );
  });

  it('refuses changed claims', async () => {
    const signer = keySigner();
    const requirement = { kind: 'pubKey', key: signer.publicKey } as const;
    const layered = push();
    const { claim, annotations } = signatureLayer(signer, push().digest);
    const changed = Buffer.from(
      Buffer.from(claim)
        .toString()
        .replace(/sha256:[0-9a-f]{64}/, layered.digest),
    );
    attachLayers(registry, layered.repository, layered.digest, [{ claim: changed, annotations }]);
    await assert.rejects(verify(layered, requirement), refused('signature-invalid', /is not of a required key/));
    const keyless = push();
    const stolen = signatureLayer(await github(), push().digest);
    const moved = Buffer.from(
      Buffer.from(stolen.claim)
        .toString()
        .replace(/sha256:[0-9a-f]{64}/, keyless.digest),
    );
    attachLayers(registry, keyless.repository, keyless.digest, [{ ...stolen, claim: moved }]);
    await assert.rejects(verify(keyless, KUBEWARDEN), refused('signature-invalid', /is not trusted/));
  });

  it('refuses statements that are not signatures', async () => {
    const artifact = push();
    const scan = statementBundle(await github(), artifact.digest, { predicateType: 'https://slsa.dev/provenance/v1' });
    attachBundles(registry, artifact.repository, artifact.digest, [scan]);
    await assert.rejects(
      verify(artifact, KUBEWARDEN),
      refused('signature-invalid', /is not a signature but another statement/),
    );
  });

  it('refuses a bundle that says two things', async () => {
    const [signer, artifact] = [await github(), push()];
    const evil = messageBundle(signer, Buffer.from('x'));
    attachBundles(registry, artifact.repository, artifact.digest, [
      { ...evil, ...statementBundle(signer, artifact.digest), ...evil },
    ]);
    await assert.rejects(verify(artifact, KUBEWARDEN), refused('signature-invalid', /two kinds of signatures/));
  });

  describe('compares identities', () => {
    const subjects: readonly [subject: string, requirement: SignatureRequirement, isAccepted: boolean][] = [
      [WORKFLOW, { kind: 'githubAction', owner: 'kubewarden', repo: 'policies' }, true],
      [WORKFLOW, { kind: 'githubAction', owner: 'kubewarden', repo: 'policy' }, false],
      [WORKFLOW, { kind: 'githubAction', owner: 'kube' }, false],
      ['https://github.com/kubewarden-evil/policies/x', KUBEWARDEN, false],
      ['https://github.com/kubewarden', KUBEWARDEN, false],
      ['https://github.com/kubewarden/', KUBEWARDEN, false],
      ['https://github.com/kubewarden@evil.example.com/x', KUBEWARDEN, false],
      ['https://github.com/kubewarden/../evil/x', KUBEWARDEN, false],
      ['https://github.com/kubewarden/%2E%2e/evil/x', KUBEWARDEN, false],
      ['https://github.com.evil.example.com/kubewarden/x', KUBEWARDEN, false],
      ['http://github.com/kubewarden/x', KUBEWARDEN, false],
      [WORKFLOW, { kind: 'genericIssuer', issuer: GITHUB, subject: { equal: WORKFLOW } }, true],
      [WORKFLOW, { kind: 'genericIssuer', issuer: GITHUB, subject: { equal: WORKFLOW.slice(0, -1) } }, false],
      [WORKFLOW, { kind: 'genericIssuer', issuer: `${GITHUB}/`, subject: { equal: WORKFLOW } }, false],
      [
        WORKFLOW,
        { kind: 'genericIssuer', issuer: GITHUB, subject: { urlPrefix: 'https://github.com/kubewarden/' } },
        true,
      ],
      [WORKFLOW, { kind: 'genericIssuer', issuer: GITHUB, subject: { urlPrefix: 'https://github.com/kube/' } }, false],
      ['a@example.com', { kind: 'genericIssuer', issuer: GITHUB, subject: { equal: 'a@example.com' } }, true],
      ['a@example.com', { kind: 'genericIssuer', issuer: GITHUB, subject: { equal: 'b@example.com' } }, false],
    ];
    for (const [subject, requirement, isAccepted] of subjects) {
      const { kind, ...rest } = requirement;
      it(`${isAccepted ? 'accepts' : 'refuses'} ${subject} as ${kind} ${JSON.stringify(rest)}`, async () => {
        const artifact = signedBy(await github({ subjects: [subject] }));
        await (isAccepted
          ? verify(artifact, requirement)
          : assert.rejects(
              verify(artifact, requirement),
              refused('signature-invalid', new RegExp(`is of .* by ${GITHUB}`)),
            ));
      });
    }

    it('refuses GitHub as the subject of another issuer', async () => {
      const artifact = signedBy(await github({ issuer: 'https://issuer.example.com' }));
      await assert.rejects(
        verify(artifact, KUBEWARDEN),
        refused('signature-invalid', /by https:\/\/issuer\.example\.com/),
      );
    });
  });

  it('compares annotations with those of the claim, in both layouts', async () => {
    const signer = keySigner();
    const key = { kind: 'pubKey', key: signer.publicKey } as const;
    const [layered, bundled] = [push(), push()];
    const annotations = { env: 'prod', count: 1 };
    attachLayers(registry, layered.repository, layered.digest, [signatureLayer(signer, layered.digest, annotations)]);
    attachBundles(registry, bundled.repository, bundled.digest, [
      statementBundle(signer, bundled.digest, { annotations }),
    ]);
    for (const artifact of [layered, bundled]) {
      await verify(artifact, { ...key, annotations: { env: 'prod' } });
      for (const wrong of [{ env: 'test' }, { env: 'prod', team: 'a' }, { count: '1' }, { toString: 'x' }]) {
        const requirement: SignatureRequirement = { ...key, annotations: wrong };
        await assert.rejects(verify(artifact, requirement), refused('signature-invalid', /with env=prod/));
      }
    }
  });

  it('requires all of allOf, and as many of anyOf as it says', async () => {
    const [a, b, c] = [keySigner(), keySigner(), keySigner()];
    const [keyA, keyB, keyC] = [a, b, c].map(({ publicKey }) => ({ kind: 'pubKey', key: publicKey }) as const);
    assert.ok(keyA !== undefined && keyB !== undefined && keyC !== undefined);
    const artifact = push();
    attachLayers(registry, artifact.repository, artifact.digest, [
      signatureLayer(a, artifact.digest),
      signatureLayer(a, artifact.digest),
    ]);
    attachBundles(registry, artifact.repository, artifact.digest, [statementBundle(b, artifact.digest)]);
    const anyOf = (minimumMatches: number, ...signatures: SignatureRequirement[]) => ({
      allOf: [],
      anyOf: { minimumMatches, signatures },
    });
    await verify(artifact, { allOf: [keyA, keyB] });
    await verify(artifact, anyOf(1, keyC, keyA));
    await verify(artifact, anyOf(2, keyC, keyA, keyB));
    const invalid = refused('signature-invalid', /do not satisfy/);
    await assert.rejects(verify(artifact, { allOf: [keyA, keyC] }), invalid);
    await assert.rejects(verify(artifact, anyOf(2, keyC, keyA)), invalid);
    await assert.rejects(verify(artifact, { ...anyOf(1, keyA), allOf: [keyC] }), invalid);
    await assert.rejects(verify(artifact, { ...anyOf(1, keyC), allOf: [keyA] }), invalid);
    // Of keyless signatures nothing is known without a trust root.
    await verifyWithout(artifact, anyOf(1, keyA, KUBEWARDEN));
    await assert.rejects(
      verifyWithout(artifact, anyOf(2, keyA, KUBEWARDEN)),
      refused('trust-root-unavailable', /trust root/),
    );
    await assert.rejects(verifyWithout(artifact, { allOf: [keyC, KUBEWARDEN] }), invalid);
  });

  it('verifies the digest that a reference resolves to: that of the index', async () => {
    const signer = keySigner();
    const key = { kind: 'pubKey', key: signer.publicKey } as const;
    const child = push();
    const manifests = [{ mediaType: 'application/vnd.oci.image.manifest.v1+json', digest: child.digest, size: 1 }];
    const { digest } = registry.manifest(child.repository, 'index', { schemaVersion: 2, manifests }, INDEX_TYPE);
    const index = { repository: child.repository, digest: digest as Digest };
    attachLayers(registry, child.repository, child.digest, [signatureLayer(signer, child.digest)]);
    await assert.rejects(verify(index, key), refused('signature-missing', /no signature/));
    attachLayers(registry, index.repository, index.digest, [signatureLayer(signer, index.digest)]);
    await verify(index, key);
  });

  it('finds the signature among defective ones, and reads no more than a bounded number', async () => {
    const signer = keySigner();
    const key = { kind: 'pubKey', key: signer.publicKey } as const;
    const artifact = push();
    const junk = Array.from({ length: 30 }, (_, index) => Buffer.from(`{"junk":${index}}`));
    const good = statementBundle(signer, artifact.digest);
    attachBundles(registry, artifact.repository, artifact.digest, [...junk, good]);
    await verify(artifact, key);
    const flooded = push();
    const flood = Array.from({ length: 500 }, (_, index) => Buffer.from(`{"junk":${index}}`));
    attachBundles(registry, flooded.repository, flooded.digest, [...flood, statementBundle(signer, flooded.digest)]);
    registry.paths.length = 0;
    await assert.rejects(verify(flooded, key), refused('signature-invalid', /and \d+ more/));
    assert.ok(registry.paths.length < 110, `${registry.paths.length} requests`);
  });

  it('refuses signatures that are too large without reading them', async () => {
    const artifact = push();
    attachBundles(registry, artifact.repository, artifact.digest, [Buffer.alloc(300_000, ' ')]);
    registry.paths.length = 0;
    await assert.rejects(
      verify(artifact, KUBEWARDEN),
      refused('signature-invalid', /is too large: expected at most 131072/),
    );
    assert.ok(!registry.paths.some((path) => path.includes('/blobs/')));
  });

  it('reads referrers by the API of the registry, page by page', async () => {
    const signer = keySigner();
    const artifact = push();
    const list = attachBundles(registry, artifact.repository, artifact.digest, [
      statementBundle(signer, artifact.digest),
    ]);
    await withAnswer(
      (path, query) => {
        if (!path.endsWith(`/referrers/${artifact.digest}`)) {
          return path.includes(`/manifests/${artifact.digest.replace(':', '-')}`) ? [404, {}, ''] : undefined;
        }
        return query === ''
          ? [
              200,
              { 'content-type': INDEX_TYPE, link: `<${path}?page=2>; rel="next"` },
              JSON.stringify({ schemaVersion: 2, manifests: [] }),
            ]
          : [200, { 'content-type': INDEX_TYPE }, JSON.stringify(list)];
      },
      async () => await verify(artifact, { kind: 'pubKey', key: signer.publicKey }),
    );
  });

  it('reads layers of cosign from referrers, too', async () => {
    const signer = keySigner();
    const { repository, digest } = push();
    const { claim, annotations } = signatureLayer(signer, digest);
    const layer = registry.blob(repository, claim, 'application/vnd.dev.cosign.simplesigning.v1+json');
    const artifactType = 'application/vnd.dev.cosign.artifact.sig.v1+json';
    const referrer = registry.manifest(repository, 'unused', {
      schemaVersion: 2,
      artifactType,
      layers: [{ ...layer, annotations }],
    });
    for (const [type, isFound] of [
      [artifactType, true],
      ['application/vnd.example.sbom', false],
    ] as const) {
      const manifests = [{ ...referrer, artifactType: type }];
      registry.manifest(repository, digest.replace(':', '-'), { schemaVersion: 2, manifests }, INDEX_TYPE);
      const verifying = verify({ repository, digest }, { kind: 'pubKey', key: signer.publicKey });
      await (isFound ? verifying : assert.rejects(verifying, refused('signature-missing', /no signature/)));
    }
  });

  it('requires only the logs that the trust root names', async () => {
    const artifact = signedBy(await github({ isLogged: false }));
    const { trustedRoot } = trustRoot;
    await verify(artifact, KUBEWARDEN, { trustedRoot: { ...trustedRoot, ctlogs: [] } });
    const { ctlogs: _none, ...without } = trustedRoot;
    await verify(artifact, KUBEWARDEN, { trustedRoot: without });
    // Without a log, a timestamp authority must certify the time.
    const unlogged = { trustedRoot: { ...trustedRoot, ctlogs: [], tlogs: [] } };
    await assert.rejects(
      verify(artifact, KUBEWARDEN, unlogged),
      refused('signature-invalid', /inclusion promise could not/),
    );
  });

  it('ends a list of referrers without end', async () => {
    const artifact = push();
    await withAnswer(
      (path) =>
        path.includes('/referrers/')
          ? [
              200,
              { 'content-type': INDEX_TYPE, link: `<${path}?again>; rel="next"` },
              JSON.stringify({ schemaVersion: 2, manifests: [] }),
            ]
          : undefined,
      async () => await assert.rejects(verify(artifact, KUBEWARDEN), refused('signature-missing', /no signature/)),
    );
  });

  it('takes a page of HTML for a registry without the API', async () => {
    const signer = keySigner();
    const artifact = push();
    attachBundles(registry, artifact.repository, artifact.digest, [statementBundle(signer, artifact.digest)]);
    await withAnswer(
      (path) => (path.includes('/referrers/') ? [200, { 'content-type': 'text/html' }, '<html>'] : undefined),
      async () => await verify(artifact, { kind: 'pubKey', key: signer.publicKey }),
    );
  });

  it('does not take a failure of the registry for a missing signature', async () => {
    const signer = keySigner();
    const key = { kind: 'pubKey', key: signer.publicKey } as const;
    const artifact = push();
    attachBundles(registry, artifact.repository, artifact.digest, [statementBundle(signer, artifact.digest)]);
    for (const part of ['/referrers/', '/blobs/', '.sig']) {
      await withAnswer(
        (path) => (path.includes(part) ? [500, {}, ''] : undefined),
        async () => await assert.rejects(verify(artifact, key), refused('source-failed', /answered 500/)),
      );
    }
  });
});

/** Runs a test while some requests are answered differently. */
async function withAnswer(
  answer: (path: string, query: string) => [status: number, headers: Record<string, string>, body: string] | undefined,
  run: () => Promise<void>,
): Promise<void> {
  registry.intercept = (request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://registry');
    const given = answer(pathname, search);
    if (given === undefined) {
      return false;
    }
    const [status, headers, body] = given;
    response.writeHead(status, headers).end(body);
    return true;
  };
  try {
    await run();
  } finally {
    registry.intercept = () => false;
  }
}
