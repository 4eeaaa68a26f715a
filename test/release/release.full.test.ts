// A release, as its command makes it in a clone: first as a dry run, then pushed to a registry of the test. Nothing is published.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseYaml } from '../../src/values/yaml/index.ts';
import { copyWorkTree } from '../../tools/work-tree.ts';
import { type CommandResult, run } from '../cli/command.ts';
import {
  clusterAvailable,
  goProgramPath,
  skipWithoutCluster,
  skipWithoutRegistryClients,
} from '../cluster/binaries.ts';
import { Registry } from '../registry/registry-lab.ts';

const SPDX = 'application/spdx+json';
const OTHER_FILES = [
  'CHANGELOG.md',
  'portcullis.yaml',
  'portcullis-0.1.0.tgz',
  'portcullis-0.1.0-linux-amd64.spdx.json',
  'portcullis-0.1.0-linux-arm64.spdx.json',
  'charts/portcullis-0.1.0.tgz',
  'charts/portcullis-crds-0.1.0.tgz',
  'image/index.json',
];

describe('a release', { skip: skipWithoutCluster(), timeout: 480_000 }, () => {
  const clone = mkdtempSync(join(tmpdir(), 'portcullis-release-'));
  const release = join(clone, 'release');
  let registry: Registry;
  let dryRun: CommandResult;
  let checksums: string;

  before(async () => {
    registry = await Registry.start();
    copyWorkTree(clone);
    writeFileSync(join(clone, '.npmrc'), `${readFileSync(join(clone, '.npmrc'), 'utf8')}loglevel=error\n`);
    const identity = ['-c', 'user.name=test', '-c', 'user.email=test@example.com'];
    await git('init', '--quiet');
    await git('add', '--all');
    await git(...identity, 'commit', '--quiet', '--message', 'feat(cli): print what matters');
    await git('config', 'user.name', 'test');
    await git('config', 'user.email', 'test@example.com');
    dryRun = await command('--dry-run', '--registry', `${registry.host}/team`);
    assert.equal(dryRun.code, 0, dryRun.stderr);
    checksums = readFileSync(join(release, 'SHA256SUMS'), 'utf8');
  });
  after(async () => {
    await (registry as Registry | undefined)?.[Symbol.asyncDispose]();
    rmSync(clone, { recursive: true, force: true });
  });

  const environment = (): Record<string, string> => ({
    DOCKER_CONFIG: dirname(registry.dockerConfig),
    SSL_CERT_FILE: join(clone, 'ca.crt'),
  });
  const git = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run('git', args, { cwd: clone });
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  /** As of the script `release` of package.json. */
  const command = (...args: readonly string[]): Promise<CommandResult> =>
    run('npm', ['run', '--silent', 'release', '--', ...args], { cwd: clone, env: environment() });
  const imageOf = (output: string): string => /with the image (\S+)/.exec(output)?.[1] ?? assert.fail(output);
  const client = async (program: string, ...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(program, args, { cwd: clone, env: environment() });
    assert.equal(code, 0, `${program} ${args.join(' ')}: ${stderr}`);
    return stdout;
  };

  it('has an npm package, an image, charts, manifests, bills of materials, a changelog, and checksums of all', () => {
    const listed = new Map(
      checksums
        .trim()
        .split('\n')
        .map((line) => line.split('  ').toReversed() as [string, string]),
    );
    for (const path of OTHER_FILES) {
      const digest = createHash('sha256')
        .update(readFileSync(join(release, path)))
        .digest('hex');
      assert.equal(listed.get(path), digest, path);
    }
    assert.match(
      readFileSync(join(release, 'CHANGELOG.md'), 'utf8'),
      /^# 0\.1\.0 \(\d{4}-\d\d-\d\d\)\n\n## Features\n\n- \*\*cli\*\*: print what matters\n$/,
    );
  });

  it('has the files, and is made with the commands, of docs/releasing.md', () => {
    const page = readFileSync(join(clone, 'docs', 'releasing.md'), 'utf8');
    const files = [...page.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path.replace('VERSION', '0.1.0')),
    );
    assert.ok(files.length > 7, files.join(', '));
    assert.deepEqual(
      files.filter((path) => !existsSync(join(release, path))),
      [],
    );
    assert.deepEqual(
      [...page.matchAll(/^ +\$ (npm run release.*)$/gm)].map(([, line]) => line),
      ['--dry-run --registry registry.example.com/team', '--registry registry.example.com/team'].map(
        (args) => `npm run release -- ${args}`,
      ),
    );
  });

  it('pushes and tags nothing in a dry run', async () => {
    assert.match(dryRun.stdout, /Nothing was pushed or tagged/);
    assert.equal(await git('tag'), '');
    const { statusCode } = await registry.request('GET', '/v2/team/portcullis/tags/list');
    assert.equal(statusCode, 404);
  });

  it('has manifests that are the defaults, with the image and its digest', () => {
    const image = imageOf(dryRun.stdout);
    assert.match(image, /^localhost:\d+\/team\/portcullis:0\.1\.0@sha256:[0-9a-f]{64}$/);
    const manifests = readFileSync(join(release, 'portcullis.yaml'), 'utf8');
    assert.equal(
      manifests.replaceAll(image, 'portcullis:0.1.0'),
      readFileSync(join(clone, 'deploy', 'manifests', 'portcullis.yaml'), 'utf8'),
    );
    assert.deepEqual(
      [...manifests.matchAll(/\bimage: (\S+)/g)].map(([, found]) => found),
      [image, image],
    );
  });

  describe('for a registry', () => {
    let output: CommandResult;

    before(async () => {
      writeFileSync(join(registry.dockerConfig, '..', 'ca.crt'), registry.ca);
      const sources = join(dirname(registry.dockerConfig), 'sources.yml');
      const authorities = { [registry.host]: [{ type: 'Data', data: registry.ca }] };
      writeFileSync(sources, JSON.stringify({ source_authorities: authorities }));
      output = await command('--registry', `${registry.host}/team`, '--sources-path', sources);
      assert.equal(output.code, 0, output.stdout + output.stderr);
    });

    it('has the same digests as the one before, because the commit is the same', () => {
      assert.equal(imageOf(output.stdout), imageOf(dryRun.stdout));
      assert.equal(readFileSync(join(release, 'SHA256SUMS'), 'utf8'), checksums);
    });

    it('tags the commit, and refuses to be made again', async () => {
      assert.equal(await git('tag', '--points-at', 'HEAD'), 'v0.1.0');
      const { code, stderr } = await command('--dry-run');
      assert.equal(code, 2);
      assert.match(stderr, /^error: the tag v0\.1\.0 exists: raise the version/);
    });

    it(
      'has an image that other clients read, for both platforms, with its bill of materials',
      {
        skip: skipWithoutRegistryClients(),
      },
      async () => {
        writeFileSync(join(clone, 'ca.crt'), registry.ca);
        const image = imageOf(output.stdout);
        const [crane, oras] = [goProgramPath('crane'), goProgramPath('oras')];
        const digest = image.split('@')[1] ?? '';
        const place = `${registry.host}/team/portcullis`;
        assert.equal((await client(crane, 'digest', `${place}:0.1.0`)).trim(), digest);
        for (const platform of ['linux/amd64', 'linux/arm64']) {
          await client(crane, 'validate', '--remote', `${place}:0.1.0`, '--platform', platform);
          const manifest = (await client(crane, 'digest', `${place}:0.1.0`, '--platform', platform)).trim();
          const referrers = await client(
            oras,
            'discover',
            '--plain-http=false',
            '--format',
            'json',
            `${place}@${manifest}`,
          );
          assert.ok(referrers.includes(SPDX), referrers);
        }
      },
    );

    it('has charts that helm pulls, with the image and its digest', async () => {
      const { binaries } = clusterAvailable() as Extract<ReturnType<typeof clusterAvailable>, { available: true }>;
      const ca = join(dirname(registry.dockerConfig), 'ca.crt');
      const flags = ['--version', '0.1.0', '--ca-file', ca, '--registry-config', registry.dockerConfig];
      for (const name of ['portcullis', 'portcullis-crds']) {
        const chart = `oci://${registry.host}/team/charts/${name}`;
        await client(binaries.helm, 'pull', chart, ...flags);
        assert.deepEqual(
          readFileSync(join(clone, `${name}-0.1.0.tgz`)),
          readFileSync(join(release, 'charts', `${name}-0.1.0.tgz`)),
        );
      }
      const chart = `oci://${registry.host}/team/charts/portcullis`;
      const [values] = parseYaml(await client(binaries.helm, 'show', 'values', chart, ...flags)) as { image: string }[];
      assert.equal(values?.image, imageOf(output.stdout));
      const rendered = await client(binaries.helm, 'template', 'portcullis', chart, ...flags);
      assert.ok(/^ +image: ['"]?(\S+?)['"]?$/m.exec(rendered)?.[1] === imageOf(output.stdout), rendered);
    });
  });

  it('is refused without a registry', async () => {
    const { code, stderr } = await run(process.execPath, ['tools/release.ts'], { cwd: clone });
    assert.equal(code, 2);
    assert.match(stderr, /^error: a release needs --registry HOST\/PATH, or --dry-run/);
    assert.ok(existsSync(release));
  });
});
