// The first layer: the libraries that Node needs, from packages of Debian, and the user.
import { posix } from 'node:path';
import { type DebianPackage, fetchPackage } from './debian-packages.ts';
import { dynamicLinking } from './elf.ts';
import { FileTree, type TreeEntry } from './file-tree.ts';
import { output, outputBytes } from './output.ts';
import { unpack } from './unpack.ts';

/** Nobody on a node, and in no group of files. */
export const USER_ID = 65532;

const PASSWD = `root:x:0:0:root:/:/nologin\nportcullis:x:${USER_ID}:${USER_ID}:portcullis:/tmp:/nologin\n`;
const GROUP = `root:x:0:\nportcullis:x:${USER_ID}:\n`;
/** Names in /etc/hosts, which kubelets write, come first. */
const NSSWITCH = 'passwd: files\ngroup: files\nhosts: files dns\n';
/** Anybody may write to it, and remove only what is their own. */
const SHARED_FOLDER_MODE = 0o1777;
/** Most links from one file to another. */
const MAX_LINKS = 8;

/** Paths of all packages that are always in the image: links of a merged /usr, the release, and licenses. */
const ALWAYS = /^(?:lib|lib64|etc\/os-release|usr\/lib\/os-release|usr\/share\/doc\/[^/]+(?:\/copyright)?)$/;
const COMMON_LICENSE = /\/usr\/share\/common-licenses\/[\w.-]*\w/g;

type Files = ReadonlyMap<string, TreeEntry>;

/** @param program an ELF file; the image gets the libraries that it needs, and those that they need */
export async function baseFiles(packages: readonly DebianPackage[], program: Buffer): Promise<FileTree> {
  const tree = new FileTree()
    .file('etc/passwd', PASSWD)
    .file('etc/group', GROUP)
    .file('etc/nsswitch.conf', NSSWITCH)
    .add('tmp', { kind: 'folder', mode: SHARED_FOLDER_MODE });
  const files = new Map<string, TreeEntry>();
  for (const pinned of packages) {
    const file = await fetchPackage(pinned);
    (await unpack(await outputBytes('dpkg-deb', ['--fsys-tarfile', file]))).forEach((entry, path) =>
      files.set(path, entry),
    );
    // Where scanners look for packages of images that have no dpkg.
    tree.file(`var/lib/dpkg/status.d/${pinned.name}`, await output('dpkg-deb', ['--field', file]));
  }
  const always = [...files.keys()].filter((path) => ALWAYS.test(path));
  for (const path of [...always, ...librariesOf(files, program)]) {
    addWithTarget(tree, files, path);
  }
  for (const path of licensesOf(tree)) {
    addWithTarget(tree, files, path);
  }
  return tree;
}

/** Paths of the dynamic linker and of all libraries. @throws Error that names a missing one */
function librariesOf(files: Files, program: Buffer): readonly string[] {
  const { interpreter = '', needed } = dynamicLinking(program, 'node');
  const paths = new Set([pathOfLinker(files, interpreter)]);
  const pending = [...needed];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const path = libraryNamed(files, name);
    if (!paths.has(path)) {
      paths.add(path);
      pending.push(...dynamicLinking(contentOf(files, path), path).needed);
    }
  }
  return [...paths];
}

/** The path in the packages, where /lib is a link to usr/lib. */
function pathOfLinker(files: Files, interpreter: string): string {
  const path = `usr${interpreter}`;
  if (!files.has(path)) {
    throw new Error(`no package of the lock has ${interpreter}, the dynamic linker of Node`);
  }
  return path;
}

function libraryNamed(files: Files, name: string): string {
  const found = [...files.keys()].find(
    (path) => /^usr\/lib\/[^/]+\/[^/]+$/.test(path) && posix.basename(path) === name,
  );
  if (found === undefined) {
    throw new Error(`no package of the lock has ${name}, which Node needs`);
  }
  return found;
}

/** The bytes of a file, or of the one that a link names. */
function contentOf(files: Files, path: string): Buffer {
  const target = targetsOf(files, path).at(-1) ?? path;
  const entry = files.get(target);
  if (entry?.kind !== 'file') {
    throw new Error(`${path} of Debian's packages is no file`);
  }
  return Buffer.from(entry.content);
}

/** A path, the one that it links to, and so on. */
function targetsOf(files: Files, path: string): readonly string[] {
  const targets = [path];
  for (let entry = files.get(path); entry?.kind === 'link' && targets.length < MAX_LINKS;) {
    const target = posix.join(posix.dirname(targets.at(-1) ?? path), entry.target);
    targets.push(target);
    entry = files.get(target);
  }
  return targets;
}

function addWithTarget(tree: FileTree, files: Files, path: string): void {
  for (const target of targetsOf(files, path)) {
    const entry = files.get(target);
    if (entry !== undefined) {
      tree.add(target, entry);
    }
  }
}

/** Licenses that files named `copyright` refer to. */
function licensesOf(tree: FileTree): readonly string[] {
  const texts = tree.entries.flatMap(([path, entry]) =>
    entry.kind === 'file' && path.endsWith('/copyright') ? [Buffer.from(entry.content).toString()] : [],
  );
  return [...new Set(texts.flatMap((text) => text.match(COMMON_LICENSE) ?? []))].map((path) => path.slice(1));
}
