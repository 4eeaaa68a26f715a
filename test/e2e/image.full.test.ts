// The image of `npm run image`: its content, and the product that runs from it in a cluster.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { list } from 'tar';
import { type BuiltImage, buildImage } from '../../tools/image/build-image.ts';
import { fetchPackage, readDebianLock } from '../../tools/image/debian-packages.ts';
import { packPackage } from '../../tools/package/pack.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { CONFIG_MAPS, configMap, guard, podNames, VALUES } from './install-case.ts';
import { CONTROLLER, InstallLab, NAMESPACE, POLICY_SERVER } from './install-lab.ts';
import { findIsolation, ImageSandbox, LayoutImage } from './image-sandbox.ts';

/** The architecture of this machine, in the words of images. */
const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'amd64';
/** Programs of the image outside of the product. */
const EXECUTABLES: Readonly<Record<string, readonly string[]>> = {
  amd64: ['usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2', 'usr/lib/x86_64-linux-gnu/libc.so.6', 'usr/local/bin/node'],
  arm64: [
    'usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1',
    'usr/lib/aarch64-linux-gnu/libc.so.6',
    'usr/local/bin/node',
  ],
};

interface ListedEntry {
  readonly path: string;
  readonly type: string;
  readonly mode: number;
  readonly owner: string;
}

async function entriesOf({ layers }: LayoutImage): Promise<readonly ListedEntry[]> {
  const entries: ListedEntry[] = [];
  for (const file of layers) {
    await list({
      file,
      onReadEntry: ({ path, type, mode = 0, uid, gid }) => entries.push({ path, type, mode, owner: `${uid}:${gid}` }),
    });
  }
  return entries;
}

describe('the image', { timeout: 480_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-image-'));
  const layout = join(folder, 'image');
  const isolation = await findIsolation();
  let built: BuiltImage;

  before(async () => {
    const { path } = await packPackage(folder);
    built = await buildImage({ folder: layout, tarball: path });
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('shares the layers of the product between platforms', () => {
    const [amd64 = [], arm64 = []] = built.platforms.map(({ layers }) => layers.map(({ digest }) => digest));
    assert.deepEqual(amd64.slice(2), arm64.slice(2));
    assert.notDeepEqual(amd64.slice(0, 2), arm64.slice(0, 2));
  });

  for (const architecture of ['amd64', 'arm64']) {
    it(`for ${architecture} has Node, its libraries and the product, and no other program`, async () => {
      const entries = await entriesOf(new LayoutImage(layout, architecture));
      const outside = entries.filter(({ path }) => !path.startsWith('opt/'));
      assert.deepEqual(
        outside.filter(({ type, mode }) => type === 'File' && (mode & 0o111) !== 0).map(({ path }) => path),
        EXECUTABLES[architecture],
      );
      const libraries = outside
        .map(({ path }) => /\/(lib[\w+-]+)\.so\S*$/.exec(path)?.[1])
        .filter((name) => name !== undefined);
      assert.deepEqual([...new Set(libraries)].toSorted(), [
        'libc',
        'libdl',
        'libgcc_s',
        'libm',
        'libpthread',
        'libstdc++',
      ]);
    });

    it(`for ${architecture} has files that belong to root, and only /tmp for anybody to write to`, async () => {
      const entries = await entriesOf(new LayoutImage(layout, architecture));
      assert.deepEqual([...new Set(entries.map(({ owner }) => owner))], ['0:0']);
      const writable = entries.filter(({ type, mode }) => type !== 'SymbolicLink' && (mode & 0o7022) !== 0);
      assert.deepEqual(
        writable.map(({ path, mode }) => [path, mode.toString(8)]),
        [['tmp/', '1777']],
      );
    });
  }

  it('has no tests and sources', async () => {
    const paths = (await entriesOf(new LayoutImage(layout, 'amd64'))).map(({ path }) => path);
    assert.ok(paths.includes('opt/portcullis/dist/cli/program/main.js'));
    assert.ok(paths.includes('opt/portcullis/node_modules/commander/package.json'));
    assert.deepEqual(
      paths.filter((path) => /^opt\/portcullis\/(?:src|test|tools)\/|\.d\.ts$|node_modules\/typescript/.test(path)),
      [],
    );
  });

  it('has a bill of materials that names Node, the packages of Debian, and the dependencies', () => {
    const sbom = JSON.parse(built.platforms[0]?.sbom.toString() ?? '') as {
      spdxVersion: string;
      packages: readonly { name: string; externalRefs: readonly { referenceLocator: string }[] }[];
    };
    assert.equal(sbom.spdxVersion, 'SPDX-2.3');
    const names = sbom.packages.map(({ name }) => name);
    for (const name of ['portcullis', 'node', 'libc6', 'libstdc++6', 'libgcc-s1', 'commander', 're2js']) {
      assert.ok(names.includes(name), `${name} in ${names.join(', ')}`);
    }
    assert.ok(!names.some((name) => name.startsWith('node-') || name === 'typescript'));
    const places = sbom.packages.flatMap(({ externalRefs }) => externalRefs.map((one) => one.referenceLocator));
    assert.ok(places.some((place) => /^pkg:deb\/debian\/libc6@[^?]+\?arch=amd64&distro=\w+$/.test(place)));
  });

  it('is not built when no mirror has a pinned package, and says how to pin another', async () => {
    const [pinned] = (await readDebianLock()).packages.amd64;
    assert.ok(pinned);
    await assert.rejects(
      fetchPackage({ ...pinned, path: 'pool/main/n/none/none_1_all.deb', sha256: '0'.repeat(64) }),
      /^Error: base-files \S+ is on no mirror of this machine; .*npm run image -- --update/,
    );
  });

  describe('unpacked', { skip: isolation === undefined && 'needs bubblewrap with user namespaces, or root' }, () => {
    let sandbox: ImageSandbox;

    before(async () => {
      const root = join(folder, 'root');
      mkdirSync(root);
      sandbox = await ImageSandbox.unpack(new LayoutImage(layout, ARCHITECTURE), root, isolation ?? 'chroot');
    });

    it('runs as a user other than root, with a read-only root, without capabilities and without a shell', async () => {
      const program = `
        const fs = require('node:fs');
        const { spawnSync } = require('node:child_process');
        const [, capabilities] = /^CapEff:\\s*(\\w+)$/m.exec(fs.readFileSync('/proc/self/status', 'utf8'));
        const write = (path) => { try { fs.writeFileSync(path, ''); return 'written'; } catch ({ code }) { return code; } };
        console.log(JSON.stringify([
          process.getuid(), process.getgid(), capabilities, write('/opt/portcullis/new'), write('/tmp/new'),
          spawnSync('sh', ['-c', 'exit']).error?.code, process.env.NODE_ENV,
        ]));`;
      const { stdout, stderr } = await sandbox.run('node', '-e', program);
      assert.notEqual(stdout, '', stderr);
      assert.deepEqual(JSON.parse(stdout), [
        65532,
        65532,
        '0000000000000000',
        'EROFS',
        'EROFS',
        'ENOENT',
        'production',
      ]);
    });

    it('has the Node that the lock file pins', async () => {
      const { stdout } = await sandbox.run('node', '--version');
      assert.equal(stdout.trim(), `v${built.node}`);
    });

    describe('in a cluster', { skip: skipWithoutCluster() }, () => {
      let lab: InstallLab;

      before(async () => {
        lab = await InstallLab.start({
          hasMounts: true,
          image: (image, pod, mounts) => {
            const container = pod.spec.containers.find((one) => one.image === image);
            assert.ok(container);
            return sandbox.command(pod, container, mounts);
          },
        });
        await lab.install(VALUES);
        await lab.running();
      });
      after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

      it('comes up, controllers and policy servers', async () => {
        const { code, stdout, stderr } = await lab.command('doctor', '--fail-on', 'error');
        assert.equal(code, 0, stdout + stderr);
      });

      it('enforces builtin policies and WebAssembly', async () => {
        await guard(lab);
        await lab.cluster.createNamespace('examples', { 'examples.portcullis.dev/enforce': 'true' });
        await lab.apply(...(await lab.example('pod-privileged')));
        await lab.active('clusteradmissionpolicies', 'pod-privileged');
        const spec = { containers: [{ name: 'main', image: 'a:1', securityContext: { privileged: true } }] };
        const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { generateName: 'asked-' }, spec };
        await lab.eventually('the policy', async () => {
          assert.match(await lab.answer('/api/v1/namespaces/examples/pods', pod), /cap\/pod-privileged/);
        });
      });

      it('ends its processes in order, and comes back', async () => {
        const before = await podNames(lab, POLICY_SERVER);
        for (const name of [CONTROLLER, POLICY_SERVER]) {
          await lab.kubectl(['rollout', 'restart', 'deployment', name, '-n', NAMESPACE]);
        }
        await lab.running();
        await lab.eventually('new pods', async () => {
          assert.ok((await podNames(lab, POLICY_SERVER)).every((name) => !before.includes(name)));
        });
        assert.match(await lab.answer(CONFIG_MAPS, configMap), /refused by the guard/);
      });
    });
  });
});
