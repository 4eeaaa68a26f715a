// Where the programs of the test cluster are: in a cache of the user, so that every clone on a machine shares them.
import { createHash } from 'node:crypto';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The Go module that pins the Kubernetes release. */
export const goModuleFolder = fileURLToPath(new URL('./apiserver', import.meta.url));

/** Go source files that decide what is built, relative to {@link goModuleFolder}. */
const goSources = ['go.mod', 'go.sum', 'main.go', 'kubectl/main.go'];

/** The programs of the test cluster, by absolute path. */
export interface ClusterBinaries {
  readonly 'kube-apiserver': string;
  readonly etcd: string;
  readonly kubectl: string;
}

export type ClusterBinary = keyof ClusterBinaries;

/** The environment variables that are read here: PATH, CI, PORTCULLIS_CACHE and XDG_CACHE_HOME. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The Kubernetes release that go.mod pins, such as `v1.34.4`. */
export function kubernetesVersion(): string {
  const version = /^\s*k8s\.io\/kubernetes (v\d+\.\d+\.\d+)$/m.exec(
    readFileSync(join(goModuleFolder, 'go.mod'), 'utf8'),
  );
  if (version?.[1] === undefined) {
    throw new Error(`${goModuleFolder}/go.mod requires no version of k8s.io/kubernetes`);
  }
  return version[1];
}

/** Arguments of `go build` for one program, except `-p` and `-o`. The release is linked in: `/version` tells it to clients. */
export function goBuildArguments(program: 'kube-apiserver' | 'kubectl'): string[] {
  const version = kubernetesVersion();
  const [major, minor] = version.slice(1).split('.');
  const linked = { gitVersion: version, gitMajor: major, gitMinor: minor };
  const symbols = Object.entries(linked).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  const flags = ['-mod=readonly', '-trimpath', '-buildvcs=false', '-ldflags', ['-s', '-w', ...symbols].join(' ')];
  return [...flags, program === 'kubectl' ? './kubectl' : '.'];
}

/**
 * The folder that holds the built programs: `cluster/<release and hash of what is built>` in `$PORTCULLIS_CACHE`, or else
 * in the `portcullis` folder of the user's cache folder. It need not exist.
 */
export function clusterCacheFolder(env: Environment = process.env): string {
  const base = env['PORTCULLIS_CACHE'] ?? join(env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'portcullis');
  const hash = createHash('sha256');
  for (const source of goSources) {
    hash.update(readFileSync(join(goModuleFolder, source)));
  }
  hash.update(JSON.stringify([goBuildArguments('kube-apiserver'), goBuildArguments('kubectl')]));
  const name = [kubernetesVersion(), process.platform, process.arch, hash.digest('hex').slice(0, 12)].join('-');
  return join(base, 'cluster', name);
}

/** The path of a program on PATH, when there is one. */
export function findOnPath(name: string, env: Environment = process.env): string | undefined {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The path of a program of the cluster: etcd and kubectl from PATH or else the cache, kube-apiserver, which is pinned, from the cache. */
export function findBinary(name: ClusterBinary, env: Environment = process.env): string | undefined {
  const installed = name === 'kube-apiserver' ? undefined : findOnPath(name, env);
  if (installed !== undefined) {
    return installed;
  }
  const cached = join(clusterCacheFolder(env), name);
  return isExecutable(cached) ? cached : undefined;
}

/** Whether a cluster can be started here: the programs, or a sentence that says what is missing and how to get it. */
export type ClusterAvailability =
  | { readonly available: true; readonly binaries: ClusterBinaries }
  | { readonly available: false; readonly reason: string };

/** Looks for the programs that {@link ClusterBinaries} names; starts none. */
export function clusterAvailable(env: Environment = process.env): ClusterAvailability {
  const apiserver = findBinary('kube-apiserver', env);
  const etcd = findBinary('etcd', env);
  const kubectl = findBinary('kubectl', env);
  if (apiserver !== undefined && etcd !== undefined && kubectl !== undefined) {
    return { available: true, binaries: { 'kube-apiserver': apiserver, etcd, kubectl } };
  }
  const found = { 'kube-apiserver': apiserver, etcd, kubectl };
  const missing = Object.entries(found).filter(([, path]) => path === undefined);
  const names = missing.map(([name]) => name).join(', ');
  return {
    available: false,
    reason: `no test cluster: ${names} not found in ${clusterCacheFolder(env)}; build with "npm run cluster:build"`,
  };
}

/**
 * The `skip` option of a test that needs a cluster: the reason when programs are missing, else `false`. Where CI is set it is always
 * `false`, so that the test runs and fails with that reason: a pipeline must not pass because it tested nothing.
 */
export function skipWithoutCluster(env: Environment = process.env): string | false {
  const availability = clusterAvailable(env);
  const inPipeline = !['', 'false', '0', undefined].includes(env['CI']);
  return availability.available || inPipeline ? false : availability.reason;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
