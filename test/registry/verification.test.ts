// Signed modules from a real registry: on policy servers, in rollouts, and on replicas while the registry is down.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  parseTrustRoot,
  parseVerification,
  type TrustRoot,
  type Verification,
  verificationOf,
} from '../../src/modules/index.ts';
import type { SourcesConfig } from '../../src/modules/sources/index.ts';
import {
  type ArtifactSigner,
  keySigner,
  type SignatureLayer,
  signatureLayer,
  statementBundle,
} from '../../src/modules/testing/test-signer.ts';
import { TestSigstore } from '../../src/modules/testing/test-sigstore.ts';
import { CLUSTER_ADMISSION_POLICIES, type KubernetesObject, POLICY_REVISIONS } from '../../src/resources/index.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { type Policy, PolicyLab } from '../lifecycle/policy-lab.ts';
import { guest, moduleBytes, moduleVariant, review, startServer, TestFolder } from '../server/harness.ts';
import {
  folderLike,
  NAMESPACE,
  openCluster,
  pinned,
  Revisions,
  startReplica,
  SwitchedCluster,
} from '../server/replica-lab.ts';
import { Registry } from './registry-lab.ts';
import { attachBundles, attachLayers } from './signatures.ts';

const GITHUB = 'https://token.actions.githubusercontent.com';
const accept = await moduleBytes(guest('accept'));
const keys = keySigner();

/** A module that behaves alike and has other bytes. */
function variant(name: string): Buffer {
  return moduleVariant(accept, name);
}

/** The text of a `verification.yml` that a key or a GitHub owner satisfies. */
function configText(key: string, note: string = 'the test'): string {
  const pubKey = { kind: 'pubKey', owner: note, key };
  const github = { kind: 'githubAction', owner: 'example', repo: 'policies' };
  return JSON.stringify({ apiVersion: 'v1', anyOf: { minimumMatches: 1, signatures: [pubKey, github] } });
}

describe('signatures of modules', { skip: skipWithoutRegistry(), timeout: 300_000 }, () => {
  let registry: Registry;
  let sources: SourcesConfig;
  let sigstore: TestSigstore;
  let trustRoot: TrustRoot;
  let verification: Verification;
  let lab: PolicyLab;

  before(async () => {
    registry = await Registry.start();
    sources = await registry.sources(registry);
    sigstore = await TestSigstore.create();
    trustRoot = parseTrustRoot(sigstore.trustedRoot, 'trusted_root.json');
    verification = verificationOf(parseVerification(configText(keys.publicKey), 'verification.yml'), trustRoot);
    lab = await PolicyLab.start({ sources, verification });
  });
  after(async () => {
    await lab?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
  });

  const reference = (repository: string, tag: string = 'v1'): string =>
    `registry://${registry.host}/${repository}:${tag}`;

  const keyless = async (repository: string = 'example/policies'): Promise<ArtifactSigner> =>
    await sigstore.signer({
      issuer: GITHUB,
      subjects: [`https://github.com/${repository}/.github/workflows/release.yml@refs/tags/v1`],
    });

  /** Pushes a module that is signed by the key. Returns the digest of its manifest. */
  async function pushSigned(repository: string, tag: string, module: Uint8Array): Promise<string> {
    const digest = await registry.push(repository, tag, module);
    await attachLayers(registry, repository, digest, [signatureLayer(keys, digest)]);
    return digest;
  }

  const policy = (name: string, module: string): KubernetesObject & { readonly spec: object } => ({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: {
      module,
      settings: {},
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
    },
  });

  const change = async (name: string, module: string): Promise<void> =>
    await lab.merge(CLUSTER_ADMISSION_POLICIES, { name }, { spec: { module } });

  const recorded = async (name: string, revision: number): Promise<readonly (string | undefined)[]> => {
    const key = { namespace: NAMESPACE, name: `${Revisions.id(name)}-${revision}` };
    const { status } = await lab.cluster.admin.get(POLICY_REVISIONS, key);
    return (status?.modules ?? []).map(({ verifiedBy }) => verifiedBy);
  };

  it('are verified before a policy serves: of a key, and keyless ones, and the revision records by what', async () => {
    await pushSigned('signed/key', 'v1', variant('key'));
    const digest = await registry.push('signed/keyless', 'v1', variant('keyless'));
    await attachBundles(registry, 'signed/keyless', digest, [statementBundle(await keyless(), digest)]);
    for (const name of ['key', 'keyless']) {
      const signed = policy(name, reference(`signed/${name}`));
      await lab.create(signed);
      await lab.reaches(signed, 'Active');
      assert.deepEqual(await recorded(name, 1), [verification.id]);
      assert.equal((await lab.server.review(Revisions.id(name), review())).allowed, true);
    }
    const builtin = policy('builtin', 'builtin:pod-security');
    await lab.create({ ...builtin, spec: { ...builtin.spec, settings: { enforce: 'baseline' } } });
    await lab.reaches(builtin, 'Active');
    assert.deepEqual(await recorded('builtin', 1), [undefined]);
  });

  const refusals: readonly (readonly [
    what: string,
    sign: (repository: string, digest: string) => Promise<void>,
    reason: string,
    message: RegExp,
  ])[] = [
    ['no signature', async () => undefined, 'SignatureMissing', /has no signature/],
    [
      'a signature of another key',
      async (repository, digest) =>
        await attachLayers(registry, repository, digest, [signatureLayer(keySigner(), digest)]),
      'SignatureInvalid',
      /is not of a required key/,
    ],
    [
      'a signature of another artifact',
      async (repository, digest) =>
        await attachLayers(registry, repository, digest, [signatureLayer(keys, `sha256:${'0'.repeat(64)}`)]),
      'SignatureInvalid',
      /is for another artifact/,
    ],
    [
      'a claim that was tampered with',
      async (repository, digest) => {
        const { annotations } = signatureLayer(keys, `sha256:${'0'.repeat(64)}`);
        const layer: SignatureLayer = { claim: signatureLayer(keys, digest).claim, annotations };
        await attachLayers(registry, repository, digest, [layer]);
      },
      'SignatureInvalid',
      /is not of a required key/,
    ],
    [
      'a certificate of another repository',
      async (repository, digest) => {
        const signer = await keyless('mallory/policies');
        await attachBundles(registry, repository, digest, [statementBundle(signer, digest)]);
      },
      'SignatureInvalid',
      /is of https:\/\/github\.com\/mallory\/policies/,
    ],
    [
      'a certificate of another authority',
      async (repository, digest) => {
        const other = await TestSigstore.create();
        const subjects = ['https://github.com/example/policies/.github/workflows/release.yml@refs/tags/v1'];
        const signer = await other.signer({ issuer: GITHUB, subjects });
        await attachBundles(registry, repository, digest, [statementBundle(signer, digest)]);
      },
      'SignatureInvalid',
      /no valid certificate path/,
    ],
    [
      'a bundle that was tampered with',
      async (repository, digest) => {
        const bundle = statementBundle(await keyless(), `sha256:${'0'.repeat(64)}`) as {
          dsseEnvelope: { payload: string };
        };
        const payload = Buffer.from(bundle.dsseEnvelope.payload, 'base64').toString();
        const other = payload.replace('0'.repeat(64), digest.replace('sha256:', ''));
        bundle.dsseEnvelope.payload = Buffer.from(other).toString('base64');
        await attachBundles(registry, repository, digest, [bundle]);
      },
      'SignatureInvalid',
      /payload hash mismatch/,
    ],
  ];

  for (const [index, [what, sign, reason, message]] of refusals.entries()) {
    it(`do not pass with ${what}: the status says ${reason}, and the last good revision serves`, async () => {
      const name = `refused-${index}`;
      const repository = `refused/r${index}`;
      await pushSigned(repository, 'v1', variant(`${name}-1`));
      const before = policy(name, reference(repository));
      await lab.create(before);
      await lab.reaches(before, 'Active');
      const digest = await registry.push(repository, 'v2', variant(`${name}-2`));
      await sign(repository, digest);
      await change(name, reference(repository, 'v2'));
      const { status } = await lab.reaches(before, 'Degraded');
      assert.equal(status?.reason, reason, status?.message);
      assert.match(status?.message ?? '', message);
      assert.equal((await lab.server.review(Revisions.id(name), review())).allowed, true);
      assert.match(status?.message ?? '', /revision 1 serves$/);
      // Signatures often come after their artifact.
      await attachLayers(registry, repository, digest, [signatureLayer(keys, digest)]);
      await lab.reaches(before, 'Active');
      assert.deepEqual(await recorded(name, 2), [verification.id]);
    });
  }

  it('do not exist for modules of other sources, which are refused', async () => {
    await pushSigned('sources/one', 'v1', variant('one'));
    const before = policy('sources', reference('sources/one'));
    await lab.create(before);
    await lab.reaches(before, 'Active');
    for (const module of [guest('accept'), 'https://127.0.0.1:1/policy.wasm']) {
      await change('sources', module);
      const { status } = await lab.reaches(before, 'Degraded');
      assert.equal(status?.reason, 'NotVerifiable', status?.message);
    }
    assert.equal((await lab.server.review(Revisions.id('sources'), review())).allowed, true);
  });

  it('stay verified after a rollback, also while the registry is down', async () => {
    await pushSigned('rollback/one', 'v1', variant('r1'));
    await pushSigned('rollback/one', 'v2', variant('r2'));
    const first = policy('rollback', reference('rollback/one'));
    await lab.create(first);
    await lab.reaches(first, 'Active');
    await change('rollback', reference('rollback/one', 'v2'));
    await lab.reaches(first, 'Active');
    await registry.stop();
    try {
      const annotations = { 'portcullis.dev/rollback-to': 'previous' };
      await lab.merge(CLUSTER_ADMISSION_POLICIES, { name: 'rollback' }, { metadata: { annotations } });
      await lab.sees<Policy>(
        CLUSTER_ADMISSION_POLICIES as never,
        { name: 'rollback' },
        (found) => found?.status?.phase === 'Active' && found.status.desiredRevision === 3,
      );
      assert.deepEqual(await recorded('rollback', 3), [verification.id]);
    } finally {
      await registry.resume();
    }
  });

  it('of keyless kind need a trust root', async () => {
    const digest = await registry.push('trust/one', 'v1', variant('trust'));
    await attachBundles(registry, 'trust/one', digest, [statementBundle(await keyless(), digest)]);
    const { config } = verification;
    await using server = await startServer({
      policies: { p: { module: reference('trust/one') } },
      sources,
      verification: verificationOf(config),
    });
    const { phase, reason, message } = await server.status('p');
    assert.deepEqual([phase, reason], ['Error', 'TrustRootUnavailable'], message);
  });

  it('need not be fetched by a replica with an empty cache beside a peer, unless it verifies by something else', async () => {
    const module = reference('peers/one');
    await pushSigned('peers/one', 'v1', variant('peers'));
    const snapshot = { module, settings: {}, mutating: false, rules: [] };
    const id = Revisions.id('peers');
    await using cluster = await openCluster();
    await using folder = await TestFolder.create();
    const common = { cluster: cluster.admin, sources };
    await using first = await startReplica({ ...common, folder, verification });
    const request = { kind: 'ClusterAdmissionPolicy', metadata: { name: 'peers' }, spec: snapshot as never };
    const modules = pinned(await first.server.prevalidate(request));
    assert.equal(modules[0]?.verifiedBy, verification.id);
    await new Revisions(cluster.admin).create('peers', 1, snapshot, { state: 'Serving', order: 1, modules } as never);
    await first.reaches(id, { phase: 'Active' });
    await registry.stop();

    await using secondFolder = await folderLike(folder);
    const switched = new SwitchedCluster(cluster.admin);
    const secondOptions = { ...common, cluster: switched.view, folder: secondFolder, name: 'replica-1', verification };
    {
      await using second = await startReplica(secondOptions);
      await second.reaches(id, { phase: 'Active' });
      assert.equal((await second.review(id, review())).allowed, true);
    }
    // After a restart, when nothing else answers either.
    switched.isDown = true;
    {
      await using second = await startReplica(secondOptions);
      assert.equal((await second.review(id, review())).allowed, true);
    }
    switched.isDown = false;
    // Satisfied by the same signature, and another verification all the same.
    const other = verificationOf(parseVerification(configText(keys.publicKey, 'another note'), 'v.yml'), trustRoot);
    await using thirdFolder = await folderLike(folder);
    await using third = await startReplica({ ...common, folder: thirdFolder, name: 'replica-2', verification: other });
    const { message } = await third.reaches(id, { phase: 'Error', reason: 'FetchFailed' });
    assert.match(message, /cannot be reached|refused|unreachable/i);
    // With the module in its cache, too.
    await using again = await startReplica({ ...common, folder: secondFolder, name: 'replica-1', verification: other });
    await again.reaches(id, { phase: 'Error', reason: 'FetchFailed' });

    await registry.resume();
    await third.reaches(id, { phase: 'Active' });
    await again.reaches(id, { phase: 'Active' });
    const strict = verificationOf(parseVerification(configText(keySigner().publicKey), 'v.yml'), trustRoot);
    await using fourthFolder = await folderLike(folder);
    await using fourth = await startReplica({
      ...common,
      folder: fourthFolder,
      name: 'replica-3',
      verification: strict,
    });
    await fourth.reaches(id, { phase: 'Error', reason: 'SignatureInvalid' });
  });
});
