// Packages of Debian, pinned by SHA-256 in deploy/image/debian-packages.json, and downloaded from the mirrors of this machine.
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../generated-files.ts';
import { output } from './output.ts';

export const ARCHITECTURES = ['amd64', 'arm64'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** The archives of Debian by the last part of their mirrors' URLs. */
const ARCHIVES = ['debian', 'debian-security'] as const;
type Archive = (typeof ARCHIVES)[number];

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly archive: Archive;
  /** Below the URL of a mirror. */
  readonly path: string;
  readonly sha256: string;
}

export interface DebianLock {
  /** The code name of the release. */
  readonly release: string;
  readonly packages: Readonly<Record<Architecture, readonly DebianPackage[]>>;
}

const LOCK = 'deploy/image/debian-packages.json';
/** Downloads with apt's settings, such as proxies. */
const APT_HELPER = '/usr/lib/apt/apt-helper';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const UPDATE_HINT = 'Run "npm run image -- --update", which pins the current versions, and commit the lock.';

export async function readDebianLock(): Promise<DebianLock> {
  return JSON.parse(await readFile(join(root, LOCK), 'utf8')) as DebianLock;
}

/** The path of a package in the cache, downloaded unless it is there. @throws Error when no mirror has it */
export async function fetchPackage(pinned: DebianPackage): Promise<string> {
  const cached = join(cacheFolder(), `${pinned.sha256}.deb`);
  if (await hasDigest(cached, pinned.sha256)) {
    return cached;
  }
  await mkdir(cacheFolder(), { recursive: true });
  const partial = await mkdtemp(join(cacheFolder(), 'partial-'));
  try {
    const file = join(partial, 'package.deb');
    await download(pinned, file);
    await rename(file, cached);
    return cached;
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

async function download({ name, version, archive, path, sha256 }: DebianPackage, file: string): Promise<void> {
  const failures: string[] = [];
  for (const mirror of (await mirrors())[archive]) {
    const url = `${mirror}/${path.replaceAll('+', '%2b')}`;
    try {
      await output(APT_HELPER, ['-o', 'APT::Sandbox::User=root', 'download-file', url, file, `SHA256:${sha256}`]);
      return;
    } catch (error) {
      failures.push(String(error));
    }
  }
  throw new Error(
    `${name} ${version} is on no mirror of this machine; mirrors remove versions that were replaced. ${UPDATE_HINT}\n${failures.join('\n')}`,
  );
}

/** Mirrors of this machine's apt, by archive. */
async function mirrors(): Promise<Readonly<Record<Archive, readonly string[]>>> {
  const listed = await output('apt-get', ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages']);
  const urls = [...new Set(listed.split('\n').map((line) => line.replace(/\/$/, '')))];
  const ofArchive = (archive: Archive): readonly string[] => urls.filter((url) => url.endsWith(`/${archive}`));
  const found = { debian: ofArchive('debian'), 'debian-security': ofArchive('debian-security') };
  const missing = ARCHIVES.filter((archive) => found[archive].length === 0);
  if (missing.length > 0) {
    throw new Error(
      `apt of this machine has no mirror of ${missing.join(' and ')}: expected URIs that end in this name`,
    );
  }
  return found;
}

/** Pins the current versions. The lists are verified with Debian's keys, in folders apart from those of this machine's apt. */
export async function updateDebianLock(): Promise<void> {
  const { release, packages } = await readDebianLock();
  const updated: Partial<Record<Architecture, readonly DebianPackage[]>> = {};
  for (const architecture of ARCHITECTURES) {
    const names = packages[architecture].map(({ name }) => name);
    updated[architecture] = await currentPackages(release, architecture, names);
  }
  await writeFile(join(root, LOCK), `${JSON.stringify({ release, packages: updated }, undefined, 2)}\n`);
}

async function currentPackages(
  release: string,
  architecture: Architecture,
  names: readonly string[],
): Promise<readonly DebianPackage[]> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-apt-'));
  try {
    const found = await mirrors();
    await writeFile(join(folder, 'sources.list'), sourcesList(release, found));
    await mkdir(join(folder, 'state', 'lists', 'partial'), { recursive: true });
    await mkdir(join(folder, 'cache', 'archives', 'partial'), { recursive: true });
    const flags = aptFlags(folder, architecture);
    await output('apt-get', [...flags, 'update']);
    const printed = await output('apt-get', [...flags, 'download', '--print-uris', ...names]);
    return names.map((name) => parseUri(printed, name, found));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function sourcesList(release: string, found: Readonly<Record<Archive, readonly string[]>>): string {
  const line = (archive: Archive, suite: string): string =>
    `deb [signed-by=${KEYRING}] ${found[archive][0]} ${suite} main\n`;
  return [
    line('debian', release),
    line('debian', `${release}-updates`),
    line('debian-security', `${release}-security`),
  ].join('');
}

function aptFlags(folder: string, architecture: Architecture): readonly string[] {
  const options = {
    'Dir::State': join(folder, 'state'),
    'Dir::State::status': '/dev/null',
    'Dir::Cache': join(folder, 'cache'),
    'Dir::Etc::sourcelist': join(folder, 'sources.list'),
    'Dir::Etc::sourceparts': '-',
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': 'root',
  };
  return Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

/** Parses a line of `apt-get download --print-uris`: `'URI' NAME_VERSION_ARCHITECTURE.deb SIZE SHA256:…`. */
function parseUri(printed: string, name: string, found: Readonly<Record<Archive, readonly string[]>>): DebianPackage {
  for (const [, uri = '', file = '', sha256 = ''] of printed.matchAll(/^'(\S+)' (\S+) \d+ SHA256:([0-9a-f]{64})$/gm)) {
    const [of, version = ''] = file.split('_');
    const archive = ARCHIVES.find((one) => found[one].some((mirror) => uri.startsWith(`${mirror}/`)));
    const mirror = archive === undefined ? undefined : found[archive].find((one) => uri.startsWith(`${one}/`));
    if (of === name && archive !== undefined && mirror !== undefined) {
      const path = decodeURIComponent(uri.slice(mirror.length + 1));
      return { name, version: decodeURIComponent(version), archive, path, sha256 };
    }
  }
  throw new Error(`apt knows no package ${name}:\n${printed}`);
}

function cacheFolder(): string {
  const { PORTCULLIS_CACHE: folder, XDG_CACHE_HOME: caches } = process.env;
  return join(folder ?? join(caches ?? join(homedir(), '.cache'), 'portcullis'), 'debian');
}

async function hasDigest(file: string, sha256: string): Promise<boolean> {
  try {
    const bytes = await readFile(file);
    return createHash('sha256').update(bytes).digest('hex') === sha256;
  } catch {
    return false;
  }
}
