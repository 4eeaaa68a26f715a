// The tables of docs/cli.md for users of kwctl, kyverno and conftest: each of our commands works.
import assert from 'node:assert/strict';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { keySigner, signatureLayer } from '../../src/modules/testing/test-signer.ts';
import { COMMAND, ROOT, run } from '../cli/command.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { Registry } from './registry-lab.ts';
import { attachLayers } from './signatures.ts';

const page = await readFile(join(ROOT, 'docs', 'cli.md'), 'utf8');
const section = page.slice(page.indexOf('## For users of kwctl, kyverno and conftest'));

/** A host as the page names it, in the place of the test's registry. */
const HOST = 'localhost:5000';

/** The second cells of the rows of tables, each once. */
const commands = [
  ...new Set([...section.matchAll(/^\| `.*` \| `(.*)` \|$/gm)].map(([, cell = '']) => cell.replaceAll('\\|', '|'))),
];

/** Whether a command needs the registry, or what the command before it left. */
function isStep(command: string): boolean {
  return [HOST, 'annotated.wasm', 'policies.tar', 'portcullis policies'].some((text) => command.includes(text));
}

const POLICY = `
apiVersion: policies.kubewarden.io/v1
kind: ClusterAdmissionPolicy
metadata: {name: teams}
spec:
  module: builtin:cel
  mutating: true
  rules:
    - {apiGroups: ['', apps], apiVersions: [v1], resources: [pods, deployments], operations: [CREATE, UPDATE]}
  settings:
    mutations:
      - patchType: ApplyConfiguration
        applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"team": "shop"}}}'}
`;
const SUITE = `
policy: {manifests: [policy.yaml]}
cases:
  - name: a pod gets a team
    object: {apiVersion: v1, kind: Pod, metadata: {name: web}}
    expect: {allowed: true, objectContains: {metadata: {labels: {team: shop}}}}
`;

describe('the commands for users of other command lines', { timeout: 300_000, concurrency: 2 }, () => {
  const signer = keySigner();
  const reason = skipWithoutRegistry();
  let registry: Registry | undefined;
  let folder = '';

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-known-commands-'));
    await mkdir(join(folder, 'bin'));
    await mkdir(join(folder, 'policies'));
    registry = reason === false ? await Registry.start() : undefined;
    const example = (name: string): string => join(ROOT, 'examples', 'required-labels', name);
    await copyFile(example('policy.wasm'), join(folder, 'policy.wasm'));
    // Annotations are the last in it.
    const image = '  io.kubewarden.policy.ociUrl: registry.example/policies/required-labels\n';
    await writeFile(join(folder, 'metadata.yml'), `${await readFile(example('metadata.yml'), 'utf8')}${image}`);
    await copyFile(example('requests/rejected.json'), join(folder, 'request.json'));
    const kubernetes = join(ROOT, 'examples', 'replica-limit', 'validating-admission-policy.yaml');
    const [vap = '', binding = ''] = (await readFile(kubernetes, 'utf8')).split('---\n');
    for (const [name, text] of Object.entries({
      'vap.yaml': vap,
      'binding.yaml': binding,
      'settings.json': '{"labels": ["app.kubernetes.io/name"]}',
      'pod.yaml': '---\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\n',
      'deployment.yaml': '---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n',
      'policies/policy.yaml': POLICY,
      'policies/portcullis-test.yml': SUITE,
      'cosign.pub': signer.publicKey,
      'ca.crt': registry?.ca ?? '',
    })) {
      await writeFile(join(folder, name), text);
    }
    const script = `#!/bin/sh\nexec "${process.execPath}" "${COMMAND}" "$@"\n`;
    await writeFile(join(folder, 'bin', 'portcullis'), script, { mode: 0o755 });
  });
  after(async () => {
    await registry?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  async function succeeds(command: string): Promise<string> {
    const env = {
      PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH'] ?? ''}`,
      XDG_CACHE_HOME: join(folder, 'cache'),
      ...(registry === undefined
        ? {}
        : { NODE_EXTRA_CA_CERTS: join(folder, 'ca.crt'), DOCKER_CONFIG: dirname(registry.dockerConfig) }),
    };
    const text = command.replaceAll(HOST, registry?.host ?? HOST);
    const { code, stdout, stderr } = await run('sh', ['-e', '-c', text], { cwd: folder, env });
    assert.equal(code, 0, `${stdout}${stderr}`);
    return stdout;
  }

  it('are in the tables', () => {
    assert.ok(commands.length >= 30);
    assert.ok(commands.every((command) => command.includes('portcullis ')));
  });

  describe('on their own', { concurrency: 2 }, () => {
    for (const command of commands.filter((one) => !isStep(one))) {
      it(command, async () => {
        await succeeds(command);
      });
    }
  });

  describe('one after the other', { skip: reason, concurrency: 1 }, () => {
    for (const command of commands.filter(isStep)) {
      it(command, async () => {
        const stdout = await succeeds(command);
        const [, digest] = /^Policy successfully pushed: .*@(sha256:[0-9a-f]{64})$/m.exec(stdout) ?? [];
        if (registry !== undefined && digest !== undefined) {
          await attachLayers(registry, 'labels', digest, [signatureLayer(signer, digest, {})]);
        }
      });
    }
  });
});
