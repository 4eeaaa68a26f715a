// The layers of the product: Node, production dependencies, and the npm package.
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { globSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../generated-files.ts';
import type { Architecture } from './debian-packages.ts';
import { FileTree } from './file-tree.ts';
import { output } from './output.ts';
import { unpack } from './unpack.ts';

/** The folder of the product. */
export const PRODUCT_FOLDER = 'opt/portcullis';
export const NODE_PATH = 'usr/local/bin/node';
/** The names of processors in npm. */
const NPM_CPUS: Readonly<Record<Architecture, string>> = { amd64: 'x64', arm64: 'arm64' };
/** Declarations and source maps, which nothing reads at run time. */
const UNREAD = /\.(?:[cm]?ts|map)$/;
/** npm's own files, and the copy of Node, which has its own layer. */
const NOT_A_DEPENDENCY = /^(?:\.|node-)/;

/** What npm installs for a platform, as the lock file pins it. */
export interface Installed {
  readonly node: FileTree;
  /** The Node program. */
  readonly program: Buffer;
  readonly dependencies: FileTree;
}

/** Installs the production dependencies, and Node, for a platform of the image. npm checks their digests. */
export async function installFor(architecture: Architecture): Promise<Installed> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-install-'));
  try {
    for (const name of ['package.json', 'package-lock.json', '.npmrc']) {
      await copyFile(join(root, name), join(folder, name));
    }
    const cpu = NPM_CPUS[architecture];
    const flags = ['--omit=dev', '--os=linux', `--cpu=${cpu}`, '--ignore-scripts', '--prefer-offline', '--no-audit'];
    await output('npm', ['ci', ...flags, '--no-fund', '--loglevel=error'], folder);
    const modules = join(folder, 'node_modules');
    const copy = join(modules, `node-linux-${cpu}`);
    const program = await readFile(join(copy, 'bin', 'node'));
    const node = new FileTree()
      .file(NODE_PATH, program, true)
      .file('usr/local/share/doc/node/LICENSE', await readFile(join(copy, 'LICENSE')));
    return { node, program, dependencies: await dependenciesIn(modules) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function dependenciesIn(modules: string): Promise<FileTree> {
  const tree = new FileTree();
  const isIncluded = (path: string): boolean => !NOT_A_DEPENDENCY.test(path) && !UNREAD.test(path);
  const found = globSync('**/*', { cwd: modules, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const entry of found) {
    const place = join(entry.parentPath, entry.name);
    const path = place.slice(modules.length + 1);
    if (isIncluded(path)) {
      tree.file(`${PRODUCT_FOLDER}/node_modules/${path}`, await readFile(place));
    }
  }
  return tree;
}

/** The files of the npm package. @param tarball of `npm pack` */
export async function packageFiles(tarball: Uint8Array): Promise<FileTree> {
  const tree = new FileTree();
  for (const [path, entry] of await unpack(tarball)) {
    tree.add(path.replace(/^package\//, `${PRODUCT_FOLDER}/`), entry);
  }
  return tree;
}
