// The manifests of Kubewarden's documentation, applied unchanged. A registry of the test is the mirror of theirs.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { loadAll } from 'js-yaml';
import { parseSources } from '../../src/modules/sources/index.ts';
import { signatureLayer } from '../../src/modules/testing/test-signer.ts';
import { TestSigstore } from '../../src/modules/testing/test-sigstore.ts';
import type { PolicyRevision } from '../../src/resources/index.ts';
import type { CommandResult } from '../cli/command.ts';
import { StartedPortcullis, WITHOUT_AUDITOR } from '../cli/started.ts';
import { skipWithoutCluster, skipWithoutRegistry } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { example, guest, moduleBytes, startServer } from '../server/harness.ts';
import { Registry } from './registry-lab.ts';
import { attachLayers } from './signatures.ts';

const FOLDER = join(import.meta.dirname, 'kubewarden');
/** For policies of the default PolicyServer, which `start` runs. */
const MANIFESTS = readdirSync(FOLDER).filter(
  (file) => file.endsWith('.yaml') && !['policy-server.yaml', 'verification.yaml'].includes(file),
);
const GITHUB = 'https://token.actions.githubusercontent.com';
/** Our modules instead of Kubewarden's. All others admit everything, whatever their settings. */
const MODULES: ReadonlyMap<string, string> = new Map([
  ['pod-privileged', example('pod-privileged')],
  ['user-group-psp', example('default-seccomp')],
]);

const read = (file: string): string => readFileSync(join(FOLDER, file), 'utf8');

/** Pushes a module for every reference of the manifests, and returns the digests of their manifests by reference. */
async function pushModules(registry: Registry): Promise<ReadonlyMap<string, string>> {
  const references = readdirSync(FOLDER).flatMap((file) => [
    ...read(file).matchAll(/module: (?:registry:\/\/)?ghcr\.io\/([\w./-]+):([\w.-]+)/g),
  ]);
  assert.ok(references.length > 10);
  const digests = new Map<string, string>();
  for (const [, repository = '', tag = ''] of references) {
    const name = repository.slice(repository.lastIndexOf('/') + 1);
    const module = await moduleBytes(MODULES.get(name) ?? guest('accept'));
    digests.set(`${name}:${tag}`, await registry.push(repository, tag, module));
  }
  return digests;
}

/** Signs a module as a workflow of GitHub does. */
async function signModule(
  registry: Registry,
  sigstore: TestSigstore,
  name: string,
  digest = '',
  owner: string,
): Promise<void> {
  const subjects = [`https://github.com/${owner}/policies/.github/workflows/release.yml@refs/tags/v1.0.0`];
  const signer = await sigstore.signer({ issuer: GITHUB, subjects });
  await attachLayers(registry, `kubewarden/policies/${name}`, digest, [signatureLayer(signer, digest)]);
}

function succeeded({ code, stdout, stderr }: CommandResult): string {
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

function pod(spec: object): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec });
}

const PLAIN = pod({ containers: [{ name: 'nginx', image: 'nginx:latest' }] });
const PRIVILEGED = pod({
  containers: [{ name: 'nginx', image: 'nginx:latest', securityContext: { privileged: true } }],
});

const skip = skipWithoutCluster() || skipWithoutRegistry();

describe('manifests of Kubewarden’s documentation', { skip, timeout: 400_000 }, () => {
  let folder: string;
  let sourcesFile: string;
  let registry: Registry;
  let digests: ReadonlyMap<string, string>;
  let started: StartedPortcullis;
  const kubectl = (args: readonly string[], stdin = ''): Promise<CommandResult> => started.kubectl(args, stdin);

  const flags = (): readonly string[] => [
    `--sources-path=${sourcesFile}`,
    `--docker-config-json-path=${registry.dockerConfig}`,
  ];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-kubewarden-'));
    registry = await Registry.start();
    digests = await pushModules(registry);
    sourcesFile = join(folder, 'sources.yml');
    const sources = {
      mirrors: { 'ghcr.io': [`https://${registry.host}`] },
      source_authorities: { [registry.host]: [{ type: 'Data', data: registry.ca }] },
    };
    writeFileSync(sourcesFile, JSON.stringify(sources));
    started = await StartedPortcullis.start(WITHOUT_AUDITOR, ...flags());
  });
  after(async () => {
    await started?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  it('apply, and become active with the digests of their manifests', async () => {
    for (const file of MANIFESTS) {
      succeeded(await kubectl(['apply', '-f', join(FOLDER, file)]));
    }
    const kinds = 'clusteradmissionpolicies,clusteradmissionpolicygroups,admissionpolicygroups';
    succeeded(await kubectl(['wait', kinds, '--all', '-A', '--for=jsonpath={.status.phase}=Active', '--timeout=60s']));
    const listed = succeeded(await kubectl(['get', 'policyrevisions', '-n', 'portcullis', '-o', 'json']));
    const { items } = JSON.parse(listed) as { items: { status: { modules: { manifest?: string }[] } }[] };
    const modules = items.flatMap(({ status }) => status.modules);
    assert.ok(modules.length > 10);
    assert.ok(
      modules.every(({ manifest }) => manifest !== undefined),
      JSON.stringify(modules),
    );
  });

  it('answer requests: they reject, change and admit', async () => {
    const privileged = await kubectl(['apply', '-f', '-', '--dry-run=server'], PRIVILEGED);
    assert.match(privileged.stderr, /denied the request: cap\/privileged-pods: /);
    const changed = succeeded(await kubectl(['apply', '-f', '-', '--dry-run=server', '-o', 'yaml'], PLAIN));
    assert.match(changed, /seccompProfile:/, 'user-group-psp has changed the pod');
    const grouped = await kubectl(['apply', '-f', '-', '--dry-run=server', '-n', 'your-namespace'], PLAIN);
    assert.match(grouped.stderr, /the Pod is using a priorityClass that is not allowed/);
  });

  it('get a hint where a builtin module does the same, and are not changed', async () => {
    const applied = await kubectl([
      'apply',
      '-f',
      join(FOLDER, 'cel.yaml'),
      '--dry-run=server',
      '--force-conflicts',
      '--server-side',
      '--field-manager=other',
    ]);
    assert.equal(applied.stderr, '', 'nothing changes');
    succeeded(await kubectl(['delete', '-f', join(FOLDER, 'cel.yaml'), '-f', join(FOLDER, 'quick-start.yaml')]));
    const cel = await kubectl(['apply', '-f', join(FOLDER, 'cel.yaml')]);
    const hints = [...cel.stderr.matchAll(/^Warning: (.*) \[builtin-module\]$/gm)].map(([, text]) => text);
    assert.deepEqual(hints, [
      'spec.module: builtin:cel takes these settings as they are, and is not downloaded: write module: builtin:cel',
    ]);
    const quickStart = await kubectl(['apply', '-f', join(FOLDER, 'quick-start.yaml')]);
    assert.match(quickStart.stderr, /module: builtin:pod-security, settings: \{enforce: baseline\} \[builtin-module\]/);
    const module = await kubectl(['get', 'cap/privileged-pods', '-o', 'jsonpath={.spec.module}']);
    assert.equal(succeeded(module), 'registry://ghcr.io/kubewarden/policies/pod-privileged:v0.2.2');
  });

  it('for another PolicyServer apply, and say what is missing', async () => {
    succeeded(await kubectl(['apply', '-f', join(FOLDER, 'policy-server.yaml')]));
    await eventually(async () => {
      const message = succeeded(await kubectl(['get', 'cap/psp-capabilities', '-o', 'jsonpath={.status.message}']));
      assert.match(message, /^PolicyServer reserved-instance-for-tenant-a has no replica/);
    });
  });

  it('for raw requests serve from a policies file', async () => {
    const sources = {
      ...parseSources(readFileSync(sourcesFile, 'utf8'), sourcesFile),
      dockerConfig: registry.dockerConfig,
    };
    await using server = await startServer({ policies: read('raw-policies.yml'), sources });
    for (const name of ['raw-validation', 'raw-mutation']) {
      assert.equal((await server.status(name)).phase, 'Active');
      const request = { user: 'alice', action: 'read', resource: 'orders' };
      const { json } = await server.post(`/validate_raw/${name}`, JSON.stringify({ request }));
      assert.partialDeepStrictEqual(json, { response: { allowed: true } });
    }
  });

  it('serve when they have the signatures that the manifests of verification require, and others do not', async () => {
    const [configMap, server] = loadAll(read('verification.yaml')) as [{ data: Record<string, string> }, object];
    const verification = join(folder, 'verification.yml');
    writeFileSync(verification, configMap.data['verification-config'] ?? '');
    const sigstore = await TestSigstore.create();
    const trust = join(folder, 'trusted_root.json');
    writeFileSync(trust, sigstore.trustedRoot);
    const [privileged, labels] = ['pod-privileged:v0.2.2', 'safe-labels:v0.1.6'];
    await signModule(registry, sigstore, 'pod-privileged', digests.get(privileged), 'kubewarden');
    await signModule(registry, sigstore, 'safe-labels', digests.get(labels), 'somebody-else');
    const verify = ['--verification-path', verification, '--sigstore-trust-config', trust];
    await using verifying = await StartedPortcullis.start(WITHOUT_AUDITOR, ...flags(), ...verify);
    const files = ['quick-start', 'namespace-selector', 'security-context'].map((name) => join(FOLDER, `${name}.yaml`));
    succeeded(await verifying.kubectl(['apply', ...files.flatMap((file) => ['-f', file])]));
    const reaches = async (name: string, reason: string): Promise<void> => {
      const wait = ['wait', `cap/${name}`, `--for=jsonpath={.status.reason}=${reason}`, '--timeout=60s'];
      succeeded(await verifying.kubectl(wait));
    };
    await reaches('privileged-pods', 'Serving');
    await reaches('safe-labels', 'SignatureInvalid');
    await reaches('user-group-psp', 'SignatureMissing');
    const revision = ['get', 'policyrevision/kw.cap.privileged-pods-1', '-n', 'portcullis', '-o', 'json'];
    const { status } = JSON.parse(succeeded(await verifying.kubectl(revision))) as PolicyRevision;
    assert.match(status?.modules?.[0]?.verifiedBy ?? '', /^sha256:/);
    const refused = await verifying.kubectl(
      ['apply', '--server-side', '--force-conflicts', '-f', '-'],
      JSON.stringify(server),
    );
    assert.match(refused.stderr, /spec\.verificationConfig: Forbidden: .*--verification-path/);
  });
});
