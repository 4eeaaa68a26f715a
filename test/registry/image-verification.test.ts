// Signatures of images, verified for policies with the payloads of Kubewarden's SDKs, through a policy server.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseTrustRoot } from '../../src/modules/index.ts';
import { DEFAULT_SOURCES, type SourcesConfig } from '../../src/modules/sources/index.ts';
import { TemporaryFolder } from '../../src/modules/testing/temporary-folder.ts';
import { TestRegistry } from '../../src/modules/testing/test-registry.ts';
import { TestSigstore } from '../../src/modules/testing/test-sigstore.ts';
import {
  type ArtifactSigner,
  attachBundles,
  attachLayers,
  keySigner,
  signatureLayer,
  statementBundle,
} from '../../src/modules/testing/test-signer.ts';
import { GUESTS, portcullis } from '../cli/command.ts';
import { guest, review, startServer, type TestServer } from '../server/harness.ts';

const GITHUB = 'https://token.actions.githubusercontent.com';
const WORKFLOW = 'https://github.com/kubewarden/app/.github/workflows/release.yml@refs/tags/v1';
const TENANT = 'kw.ap.team.asking';
const asking = { module: guest('echo-host-call'), hostCapabilities: ['oci/*'], timeoutEvalSeconds: 5 };

interface Reply {
  readonly isTrusted: boolean;
  /** The answer as JSON, or an error. */
  readonly text: string;
}

async function verify(
  server: TestServer,
  payload: unknown,
  operation = 'v2/verify',
  policy = 'asking',
): Promise<Reply> {
  const object = { binding: 'kubewarden', ns: 'oci', op: operation, payload };
  const { allowed, status } = await server.review(policy, review({ object }));
  return { isTrusted: allowed, text: status?.message ?? '' };
}

const bytesOf = (text: string): number[] => [...Buffer.from(text)];

describe('signatures of images', { timeout: 300_000 }, () => {
  let registry: TestRegistry;
  let sigstore: TestSigstore;
  let server: TestServer;
  let sources: SourcesConfig;
  let count = 0;
  const key = keySigner();
  const other = keySigner();

  before(async () => {
    registry = await TestRegistry.start();
    sigstore = await TestSigstore.create();
    sources = { ...DEFAULT_SOURCES, insecureSources: [registry.host], tenantHosts: [registry.host] };
    const trustRoot = parseTrustRoot(sigstore.trustedRoot, 'trusted_root.json');
    server = await startServer({ policies: { asking, [TENANT]: asking }, sources, trustRoot });
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
  });

  /** Stores an image with a signature, if there is a signer. */
  function push(signer?: ArtifactSigner, annotations: object | null = null): { image: string; digest: string } {
    count += 1;
    const repository = `apps/a${count}`;
    const config = registry.blob(repository, Buffer.from(`{"n":${count}}`), 'application/vnd.oci.image.config.v1+json');
    const { digest } = registry.manifest(repository, 'v1', { schemaVersion: 2, config, layers: [] });
    if (signer !== undefined) {
      attachLayers(registry, repository, digest, [signatureLayer(signer, digest, annotations)]);
    }
    return { image: `${registry.host}/${repository}:v1`, digest };
  }

  const github = async (): Promise<ArtifactSigner> => sigstore.signer({ issuer: GITHUB, subjects: [WORKFLOW] });
  const trusted = (digest: string): object => ({ is_trusted: true, digest });

  it('of public keys are verified, with both versions of the payload and with annotations', async () => {
    const { image, digest } = push(key, { env: 'prod' });
    const fields = { image, pub_keys: [key.publicKey] };
    for (const annotations of [null, {}, { env: 'prod' }]) {
      const second = await verify(server, { type: 'SigstorePubKeyVerify', ...fields, annotations });
      assert.deepEqual(JSON.parse(second.text), trusted(digest));
      const first = await verify(server, { SigstorePubKeyVerify: { ...fields, annotations } }, 'v1/verify');
      assert.deepEqual(JSON.parse(first.text), trusted(digest));
    }
    for (const wrong of [
      { annotations: { env: 'test' } },
      { pub_keys: [other.publicKey] },
      { pub_keys: [key.publicKey, other.publicKey] },
    ]) {
      const { isTrusted, text } = await verify(server, { type: 'SigstorePubKeyVerify', ...fields, ...wrong });
      assert.equal(isTrusted, false);
      assert.match(text, /cannot verify the image .* do not satisfy what the policy requires/);
    }
    const unsigned = await verify(server, { type: 'SigstorePubKeyVerify', ...fields, image: push().image });
    assert.match(unsigned.text, /has no signature: expected those of what the policy requires/);
  });

  it('that are keyless are verified by subject, prefix and GitHub', async () => {
    const { image, digest } = push(await github());
    const repository = 'https://github.com/kubewarden/app';
    const type = (name: string): object => ({ type: name, image, annotations: null });
    for (const [payload, isTrusted] of [
      [{ ...type('SigstoreKeylessVerify'), keyless: [{ issuer: GITHUB, subject: WORKFLOW }] }, true],
      [{ ...type('SigstoreKeylessVerify'), keyless: [{ issuer: GITHUB, subject: repository }] }, false],
      [
        { ...type('SigstoreKeylessVerify'), keyless: [{ issuer: 'https://evil.example.com', subject: WORKFLOW }] },
        false,
      ],
      [{ ...type('SigstoreKeylessPrefixVerify'), keyless_prefix: [{ issuer: GITHUB, url_prefix: repository }] }, true],
      [
        {
          ...type('SigstoreKeylessPrefixVerify'),
          keyless_prefix: [{ issuer: GITHUB, url_prefix: repository.slice(0, -1) }],
        },
        false,
      ],
      [{ ...type('SigstoreGithubActionsVerify'), owner: 'kubewarden' }, true],
      [{ ...type('SigstoreGithubActionsVerify'), owner: 'kubewarden', repo: 'app' }, true],
      [{ ...type('SigstoreGithubActionsVerify'), owner: 'kubewarden', repo: '' }, true],
      [{ ...type('SigstoreGithubActionsVerify'), owner: 'kubewarden', repo: 'ap' }, false],
      [{ ...type('SigstoreGithubActionsVerify'), owner: 'kube' }, false],
    ] as const) {
      const reply = await verify(server, payload);
      assert.equal(reply.isTrusted, isTrusted, `${JSON.stringify(payload)} ${reply.text}`);
      if (isTrusted) {
        assert.deepEqual(JSON.parse(reply.text), trusted(digest));
      }
    }
    const first = await verify(
      server,
      { SigstoreKeylessVerify: { image, keyless: [{ issuer: GITHUB, subject: WORKFLOW }] } },
      'v1/verify',
    );
    assert.deepEqual(JSON.parse(first.text), trusted(digest));
  });

  it('that are keyless are an error without a trust root', async () => {
    await using blind = await startServer({ policies: { asking }, sources });
    const { image } = push(await github());
    const { isTrusted, text } = await verify(blind, {
      type: 'SigstoreGithubActionsVerify',
      image,
      owner: 'kubewarden',
    });
    assert.equal(isTrusted, false);
    assert.match(text, /cannot be verified without a trust root/);
  });

  it('of a certificate are verified, with its chain and with the log if the policy requires them', async () => {
    const signer = await github();
    const stranger = await github();
    const { image, digest } = push(signer);
    const certificate = bytesOf(signer.certificate?.pem ?? '');
    const root = JSON.parse(sigstore.trustedRoot) as {
      certificateAuthorities: { certChain: { certificates: { rawBytes: string }[] } }[];
    };
    const der = root.certificateAuthorities[0]?.certChain.certificates.at(-1)?.rawBytes ?? '';
    const authority = bytesOf(new X509Certificate(Buffer.from(der, 'base64')).toString());
    const payload = {
      type: 'SigstoreCertificateVerify',
      image,
      certificate,
      certificate_chain: null as unknown,
      require_rekor_bundle: true,
      annotations: null,
    };
    for (const more of [{}, { require_rekor_bundle: false }, { certificate_chain: [authority] }]) {
      const { text } = await verify(server, { ...payload, ...more });
      assert.deepEqual(JSON.parse(text), trusted(digest));
    }
    for (const [more, message] of [
      [{ certificate: bytesOf(stranger.certificate?.pem ?? '') }, /do not satisfy what the policy requires/],
      [{ certificate_chain: [] }, /does not lead to a root/],
      [{ certificate_chain: [certificate] }, /does not lead to a root/],
      [{ certificate: authority }, /not of an authority/],
      [{ certificate: [1, 2, 3] }, /expected a certificate in PEM/],
      [{ require_rekor_bundle: null }, /expected true or false/],
    ] as const) {
      const { isTrusted, text } = await verify(server, { ...payload, ...more });
      assert.equal(isTrusted, false);
      assert.match(text, message);
    }
    // Signed by the key of the certificate, and not in the log.
    const { logEntry: _logEntry, certificate: _certificate, ...unlogged } = signer;
    const { image: quiet } = push(unlogged);
    assert.equal((await verify(server, { ...payload, image: quiet })).isTrusted, false);
    assert.equal((await verify(server, { ...payload, image: quiet, require_rekor_bundle: false })).isTrusted, true);
  });

  it('are verified by `portcullis run`, which records the answer and replays it', async () => {
    await using folder = await TemporaryFolder.create();
    const { image, digest } = push(await github());
    const file = async (name: string, text: string): Promise<string> => {
      await writeFile(join(folder.path, name), text);
      return join(folder.path, name);
    };
    const payload = { type: 'SigstoreGithubActionsVerify', image, owner: 'kubewarden', repo: null, annotations: null };
    const stdin = JSON.stringify({ binding: 'kubewarden', ns: 'oci', op: 'v2/verify', payload });
    const args = ['run', `${GUESTS}/echo-host-call.wasm`, '--raw', '-r', '-'];
    const session = join(folder.path, 'session.yml');
    const live = [
      '--sources-path',
      await file('sources.yml', `insecure_sources: ['${registry.host}']`),
      '--sigstore-trust-config',
      await file('trust.json', sigstore.trustedRoot),
      '--record-host-capabilities-interactions',
      session,
    ];
    const answer = ({ stdout }: { readonly stdout: string }): unknown =>
      JSON.parse((JSON.parse(stdout) as { status: { message: string } }).status.message);
    assert.deepEqual(answer(await portcullis([...args, ...live], { stdin })), trusted(digest));
    assert.match(await readFile(session, 'utf8'), /!SigstoreGithubActionsVerify\n/);
    const before = registry.paths.length;
    const replay = ['--replay-host-capabilities-interactions', session];
    assert.deepEqual(answer(await portcullis([...args, ...replay], { stdin })), trusted(digest));
    assert.equal(registry.paths.length, before);
  });

  it('in bundles are verified, and a moved tag needs a signature of its own', async () => {
    const { image, digest } = push();
    const repository = image.slice(image.indexOf('/') + 1).replace(':v1', '');
    attachBundles(registry, repository, digest, [statementBundle(await github(), digest)]);
    const payload = { type: 'SigstoreGithubActionsVerify', image, owner: 'kubewarden' };
    assert.deepEqual(JSON.parse((await verify(server, payload)).text), trusted(digest));
    const config = registry.blob(repository, Buffer.from('{"evil":1}'), 'application/vnd.oci.image.config.v1+json');
    const moved = registry.manifest(repository, 'v2', { schemaVersion: 2, config, layers: [] });
    attachBundles(registry, repository, moved.digest, [statementBundle(await github(), digest)]);
    const { isTrusted, text } = await verify(server, { ...payload, image: image.replace(':v1', ':v2') });
    assert.equal(isTrusted, false);
    assert.match(text, /is for another artifact/);
  });

  it('are verified for policies of a namespace, which learn no signers', async () => {
    const { image, digest } = push(await github());
    const payload = { type: 'SigstoreGithubActionsVerify', image, owner: 'kubewarden' };
    assert.deepEqual(JSON.parse((await verify(server, payload, 'v2/verify', TENANT)).text), trusted(digest));
    const { isTrusted, text } = await verify(server, { ...payload, owner: 'other' }, 'v2/verify', TENANT);
    assert.equal(isTrusted, false);
    assert.match(text, /its signatures are not those that the policy requires$/);
    await using strict = await startServer({
      policies: { [TENANT]: asking },
      sources: { ...sources, tenantHosts: [] },
    });
    assert.match((await verify(strict, payload, 'v2/verify', TENANT)).text, /private or special address/);
  });

  for (const [what, operation, payload, message] of [
    ['nothing', 'v2/verify', null, /expected the texts type and image/],
    ['another type', 'v2/verify', { type: 'Other', image: 'x' }, /type: expected SigstorePubKeyVerify/],
    [
      'no keys',
      'v2/verify',
      { type: 'SigstorePubKeyVerify', image: 'x', pub_keys: [] },
      /pub_keys: expected a list of 1/,
    ],
    [
      'a broken key',
      'v2/verify',
      { type: 'SigstorePubKeyVerify', image: 'x', pub_keys: ['k'] },
      /pub_keys\[0\]: expected a PEM/,
    ],
    [
      'no identities',
      'v2/verify',
      { type: 'SigstoreKeylessVerify', image: 'x', keyless: [{}] },
      /issuer: expected text/,
    ],
    [
      'a prefix that is no URL',
      'v2/verify',
      { type: 'SigstoreKeylessPrefixVerify', image: 'x', keyless_prefix: [{ issuer: 'i', url_prefix: 'x' }] },
      /url_prefix: expected the URL/,
    ],
    [
      'no owner',
      'v2/verify',
      { type: 'SigstoreGithubActionsVerify', image: 'x', owner: 'a/b' },
      /owner: expected the name/,
    ],
    [
      'annotations in a list',
      'v2/verify',
      { type: 'SigstoreGithubActionsVerify', image: 'x', owner: 'a', annotations: [] },
      /annotations: expected an object/,
    ],
    [
      'two variants',
      'v1/verify',
      { SigstorePubKeyVerify: {}, SigstoreKeylessVerify: {} },
      /expected an object with one of/,
    ],
    [
      'a variant of version 2',
      'v1/verify',
      { SigstoreGithubActionsVerify: { image: 'x' } },
      /expected an object with one of/,
    ],
  ] as const) {
    it(`are not verified for a payload with ${what}`, async () => {
      const image = push(key).image;
      const text = JSON.stringify(payload).replace('"image":"x"', `"image":"${image}"`);
      const reply = await verify(server, JSON.parse(text), operation);
      assert.equal(reply.isTrusted, false);
      assert.match(reply.text, message);
    });
  }
});
