// Exceptions among the manifests that commands are given.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { portcullis } from './command.ts';

const POLICY = `apiVersion: policies.kubewarden.io/v1
kind: ClusterAdmissionPolicy
metadata: {name: denies}
spec:
  module: builtin:cel
  mutating: false
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  settings: {validations: [{expression: 'false', message: denied}]}
`;
const pod = (name: string): string => `apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: shop}
spec: {containers: [{name: app, image: app}]}
`;
const exception = (expiresAt: string, objects: string): string => `---
apiVersion: portcullis.dev/v1
kind: PolicyException
metadata: {name: one, namespace: shop}
spec:
  policies: [{kind: ClusterAdmissionPolicy, name: denies}]
  objects: ${objects}
  reason: a test
  expiresAt: "${expiresAt}"
`;
const OF_IMPORTER = '{kinds: [{kind: Pod}], names: [importer]}';
const inDays = (days: number): string => `${new Date(Date.now() + days * 86_400_000).toISOString().slice(0, -5)}Z`;

describe('exceptions in files', () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-exceptions-'));
    await writeFile(join(folder, 'pods.yaml'), `${pod('importer')}---\n${pod('web')}`);
    await writeFile(join(folder, 'importer.yaml'), pod('importer'));
  });
  after(() => rm(folder, { recursive: true }));

  const policies = async (more: string): Promise<string> => {
    const file = join(folder, 'policies.yaml');
    await writeFile(file, `${POLICY}${more}`);
    return file;
  };
  const audit = async (more: string): Promise<readonly string[]> => {
    const args = ['-p', await policies(more), '-f', join(folder, 'pods.yaml'), '-o', 'json'];
    const { stdout } = await portcullis(['audit', ...args]);
    const { results } = JSON.parse(stdout) as {
      readonly results: readonly {
        readonly result: string;
        readonly exception?: string;
        readonly object: { name: string };
      }[];
    };
    return results.map(({ result, exception: by = '', object }) => `${object.name} ${result} ${by}`.trim());
  };

  it('have an audit skip what they are for, and nothing that is alike for the policy', async () => {
    assert.deepEqual(await audit(exception(inDays(30), OF_IMPORTER)), ['importer skip shop/one', 'web fail']);
  });

  it('count until they expire', async () => {
    assert.deepEqual(await audit(exception('2020-01-01T00:00:00Z', OF_IMPORTER)), ['importer fail', 'web fail']);
  });

  it('are shown, and fail no audit', async () => {
    const args = ['-p', await policies(exception(inDays(30), OF_IMPORTER)), '-f', join(folder, 'importer.yaml')];
    const { code, stdout } = await portcullis(['audit', ...args]);
    assert.equal(code, 0);
    assert.match(stdout, /cap\/denies +skip +Pod shop\/importer +excepted by shop\/one\n/);
    assert.match(stdout, /0 findings, 1 excepted/);
  });

  it('count for run and test', async () => {
    const file = await policies(exception(inDays(30), OF_IMPORTER));
    const { stdout } = await portcullis(['run', file, '-r', join(folder, 'importer.yaml')]);
    assert.equal((JSON.parse(stdout) as { readonly allowed: boolean }).allowed, true);
    const tested = await portcullis(['test', '-p', file, join(folder, 'importer.yaml')]);
    assert.equal(tested.code, 0, tested.stdout);
    const web = await portcullis(['test', '-p', file, join(folder, 'pods.yaml')]);
    assert.equal(web.code, 1, web.stdout);
  });

  for (const [what, text, message] of [
    ['no selector', exception(inDays(30), '{kinds: [{kind: Pod}]}'), /expected names, labelSelector, or both/],
    ['an end that is too far', exception(inDays(400), OF_IMPORTER), /expected at most 366 days from now/],
    [
      'an unknown field',
      exception(inDays(30), '{kinds: [{kind: Pod}], name: importer}'),
      /objects\.name: unknown field/,
    ],
  ] as const) {
    it(`are refused with ${what}`, async () => {
      const { code, stderr } = await portcullis(['audit', '-p', await policies(text), '-f', join(folder, 'pods.yaml')]);
      assert.equal(code, 1);
      assert.match(stderr, message);
    });
  }
});
