import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import type { Digest } from '../digest.ts';
import { ModuleError } from '../errors.ts';
import { HttpTransfer } from '../http/http-transfer.ts';
import { RegistryClient } from '../oci/registry-client.ts';
import { DEFAULT_SOURCES } from '../sources.ts';
import { testModule } from '../testing/test-module.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { type CertificateOptions, TestSigstore } from '../testing/test-sigstore.ts';
import {
  type ArtifactSigner,
  attachBundles,
  attachLayers,
  keySigner,
  messageBundle,
  signatureLayer,
  statementBundle,
} from '../testing/test-signer.ts';
import { parseTrustRoot, type TrustRoot } from '../trust-root.ts';
import { verificationOf } from '../verification.ts';
import type { SignatureRequirement, VerificationConfig } from '../verification-config.ts';
import { verifyArtifact } from './index.ts';

const GITHUB = 'https://token.actions.githubusercontent.com';
const WORKFLOW = 'https://github.com/kubewarden/policies/.github/workflows/release.yml@refs/tags/v1.0.0';
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

/** Pushes a new artifact; returns its repository and digest. */
function push(): { readonly repository: string; readonly digest: Digest } {
  count++;
  const repository = `policies/p${count}`;
  return { repository, digest: registry.push(repository, 'v1', testModule(`module ${count}`)).digest as Digest };
}

async function verify(
  { repository, digest }: { readonly repository: string; readonly digest: Digest },
  config: VerificationConfig | SignatureRequirement,
  root: TrustRoot | undefined = trustRoot,
): Promise<void> {
  const verification = verificationOf('kind' in config ? { allOf: [config] } : config, root);
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
      await verify(layered, requirement, undefined);
      const bundled = push();
      attachBundles(registry, bundled.repository, bundled.digest, [statementBundle(signer, bundled.digest)]);
      await verify(bundled, requirement, undefined);
      await assert.rejects(
        verify(bundled, { kind: 'pubKey', key: keySigner(type).publicKey }, undefined),
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
});
