// The manifests of Kubewarden's documentation, applied unchanged. A registry of the test is the mirror of theirs.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseSources } from '../../src/modules/index.ts';
import type { CommandResult } from '../cli/command.ts';
import { StartedPortcullis } from '../cli/started.ts';
import { skipWithoutCluster, skipWithoutRegistry } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { example, guest, moduleBytes, startServer } from '../server/harness.ts';
import { Registry } from './registry-lab.ts';

const FOLDER = join(import.meta.dirname, 'kubewarden');
/** For policies of the default PolicyServer, which `start` runs. */
const MANIFESTS = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml') && file !== 'policy-server.yaml');
/** Our modules instead of Kubewarden's. All others admit everything, whatever their settings. */
const MODULES: ReadonlyMap<string, string> = new Map([
  ['pod-privileged', example('pod-privileged')],
  ['user-group-psp', example('default-seccomp')],
]);

const read = (file: string): string => readFileSync(join(FOLDER, file), 'utf8');

/** Pushes a module for every reference of the manifests. */
async function pushModules(registry: Registry): Promise<void> {
  const references = readdirSync(FOLDER).flatMap((file) => [
    ...read(file).matchAll(/module: (?:registry:\/\/)?ghcr\.io\/([\w./-]+):([\w.-]+)/g),
  ]);
  assert.ok(references.length > 10);
  for (const [, repository = '', tag = ''] of references) {
    const name = repository.slice(repository.lastIndexOf('/') + 1);
    await registry.push(repository, tag, await moduleBytes(MODULES.get(name) ?? guest('accept')));
  }
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

describe('manifests of Kubewarden’s documentation', { skip, timeout: 240_000 }, () => {
  let folder: string;
  let sourcesFile: string;
  let registry: Registry;
  let started: StartedPortcullis;
  const kubectl = (args: readonly string[], stdin = ''): Promise<CommandResult> => started.kubectl(args, stdin);

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-kubewarden-'));
    registry = await Registry.start();
    await pushModules(registry);
    sourcesFile = join(folder, 'sources.yml');
    const sources = {
      mirrors: { 'ghcr.io': [`https://${registry.host}`] },
      source_authorities: { [registry.host]: [{ type: 'Data', data: registry.ca }] },
    };
    writeFileSync(sourcesFile, JSON.stringify(sources));
    started = await StartedPortcullis.start(
      '--sources-path',
      sourcesFile,
      '--docker-config-json-path',
      registry.dockerConfig,
    );
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
});
