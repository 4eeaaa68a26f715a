// Where the programs of the test cluster are: in a cache of the user, so that every clone on a machine shares them.
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The Go module that pins the Kubernetes release. */
const kubernetesModule = fileURLToPath(new URL('./apiserver', import.meta.url));
/** The Go module that pins helm. */
const helmModule = fileURLToPath(new URL('./helm', import.meta.url));
/** The Go module that pins what GitOps tools read health with. */
const healthModule = fileURLToPath(new URL('../gitops/health', import.meta.url));

/** The program that reads health as GitOps tools do. No part of a cluster, so it is cached on its own. */
export const GITOPS_HEALTH = 'gitops-health';

/** The programs that are built with Go: the folder of their module, and their package in it. */
const goPrograms = {
  'kube-apiserver': { folder: kubernetesModule, target: '.' },
  'kube-controller-manager': { folder: kubernetesModule, target: './controller-manager' },
  kubectl: { folder: kubernetesModule, target: './kubectl' },
  helm: { folder: helmModule, target: 'helm.sh/helm/v3/cmd/helm' },
  [GITOPS_HEALTH]: { folder: healthModule, target: '.' },
} as const;

/** A program that is built with Go. */
export type GoProgram = keyof typeof goPrograms;

/** Go source files that decide what is built. */
const goSources = [
  ...['go.mod', 'go.sum', 'main.go', 'controller-manager/main.go', 'kubectl/main.go'].map((file) =>
    join(kubernetesModule, file),
  ),
  ...['go.mod', 'go.sum'].map((file) => join(helmModule, file)),
];

/** Those of the cluster, in the order in which they are built. */
export const clusterGoPrograms = [
  'kube-apiserver',
  'kube-controller-manager',
  'kubectl',
  'helm',
] as const satisfies GoProgram[];

/** Files that decide what {@link GITOPS_HEALTH} is. */
const healthSources = ['go.mod', 'go.sum', 'main.go'].map((file) => join(healthModule, file));

/** The programs of the test cluster, by absolute path. */
export interface ClusterBinaries {
  readonly 'kube-apiserver': string;
  readonly 'kube-controller-manager': string;
  readonly etcd: string;
  readonly kubectl: string;
  readonly helm: string;
}

export type ClusterBinary = keyof ClusterBinaries;

/** In the order in which they are told of. */
const binaryNames = [
  'kube-apiserver',
  'kube-controller-manager',
  'etcd',
  'kubectl',
  'helm',
] as const satisfies ClusterBinary[];

/** The ones that may be those that are installed: clients, and a store whose release does not matter. */
const installedWillDo: ReadonlySet<ClusterBinary> = new Set(['etcd', 'kubectl', 'helm']);

/** The environment variables that are read here: PATH, CI, PORTCULLIS_CACHE and XDG_CACHE_HOME. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The Kubernetes release that go.mod pins, such as `v1.34.4`. */
export function kubernetesVersion(): string {
  const version = /^\s*k8s\.io\/kubernetes (v\d+\.\d+\.\d+)$/m.exec(
    readFileSync(join(kubernetesModule, 'go.mod'), 'utf8'),
  );
  if (version?.[1] === undefined) {
    throw new Error(`${kubernetesModule}/go.mod requires no version of k8s.io/kubernetes`);
  }
  return version[1];
}

/** The folder that `go` builds a program in. */
export function goModuleOf(program: GoProgram): string {
  return goPrograms[program].folder;
}

/** Arguments of `go build` for one program, except `-p` and `-o`. The Kubernetes release is linked in: what programs tell of it. */
export function goBuildArguments(program: GoProgram): string[] {
  const { folder, target } = goPrograms[program];
  const version = kubernetesVersion();
  const [major, minor] = version.slice(1).split('.');
  const linkedByModule: Readonly<Record<string, object>> = {
    // Without a word helm believes that clusters are Kubernetes 1.20.
    [helmModule]: {
      'helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor': major,
      'helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor': minor,
    },
    [kubernetesModule]: {
      'k8s.io/component-base/version.gitVersion': version,
      'k8s.io/component-base/version.gitMajor': major,
      'k8s.io/component-base/version.gitMinor': minor,
    },
  };
  const symbols = Object.entries(linkedByModule[folder] ?? {}).map(([name, value]) => `-X ${name}=${value}`);
  const flags = ['-mod=readonly', '-trimpath', '-buildvcs=false', '-ldflags', ['-s', '-w', ...symbols].join(' ')];
  return [...flags, target];
}

/**
 * The folder that holds the programs of the cluster: `cluster/<release and hash of what is built>` in `$PORTCULLIS_CACHE`, or else
 * in the `portcullis` folder of the user's cache folder. It need not exist.
 */
export function clusterCacheFolder(env: Environment = process.env): string {
  const name = [kubernetesVersion(), platform, hashOf(goSources, clusterGoPrograms)].join('-');
  return join(cacheFolder(env), 'cluster', name);
}

/** Where {@link GITOPS_HEALTH} is kept, in a folder of the same cache. It need not exist. */
export function gitOpsHealthPath(env: Environment = process.env): string {
  const name = [platform, hashOf(healthSources, [GITOPS_HEALTH])].join('-');
  return join(cacheFolder(env), 'gitops', name, GITOPS_HEALTH);
}

/** Where a program that is built with Go is kept. */
export function goProgramPath(program: GoProgram, env: Environment = process.env): string {
  return program === GITOPS_HEALTH ? gitOpsHealthPath(env) : join(clusterCacheFolder(env), program);
}

const platform = `${process.platform}-${process.arch}`;

function cacheFolder(env: Environment): string {
  return env['PORTCULLIS_CACHE'] ?? join(env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'portcullis');
}

function hashOf(sources: readonly string[], programs: readonly GoProgram[]): string {
  const hash = createHash('sha256');
  for (const source of sources) {
    hash.update(readFileSync(source));
  }
  return hash
    .update(JSON.stringify(programs.map(goBuildArguments)))
    .digest('hex')
    .slice(0, 12);
}

/** The path of a program on PATH, when there is one. */
export function findOnPath(name: string, env: Environment = process.env): string | undefined {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The path of a program of the cluster: etcd, kubectl and helm from PATH or else the cache, what is pinned from the cache. */
export function findBinary(name: ClusterBinary, env: Environment = process.env): string | undefined {
  const installed = installedWillDo.has(name) ? findOnPath(name, env) : undefined;
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
  const found = binaryNames.map((name) => [name, findBinary(name, env)] as const);
  const missing = found.filter(([, path]) => path === undefined).map(([name]) => name);
  if (missing.length === 0) {
    return { available: true, binaries: Object.fromEntries(found) as unknown as ClusterBinaries };
  }
  return {
    available: false,
    reason: `no test cluster: ${missing.join(', ')} not found in ${clusterCacheFolder(env)}; build with "npm run cluster:build"`,
  };
}

/**
 * The `skip` option of a test that needs a cluster: the reason when programs are missing, else `false`. Where CI is set it is always
 * `false`, so that the test runs and fails with that reason: a pipeline must not pass because it tested nothing.
 */
export function skipWithoutCluster(env: Environment = process.env): string | false {
  const availability = clusterAvailable(env);
  return availability.available || isPipeline(env) ? false : availability.reason;
}

/** As {@link skipWithoutCluster}, for a test that needs {@link GITOPS_HEALTH}. */
export function skipWithoutGitOpsHealth(env: Environment = process.env): string | false {
  const path = gitOpsHealthPath(env);
  return isExecutable(path) || isPipeline(env) ? false : `no ${path}; build it with "npm run cluster:build"`;
}

/** Whether this runs where nobody would see that a test was skipped. */
export function isPipeline(env: Environment = process.env): boolean {
  return !['', 'false', '0', undefined].includes(env['CI']);
}

/** The library that processes see another time with; see `wrong-clock.ts`. */
export const FAKETIME_LIBRARY = 'libfaketimeMT.so.1';

/** The path of {@link FAKETIME_LIBRARY} in the cache, when it is there. */
export function findFaketime(env: Environment = process.env): string | undefined {
  const path = join(clusterCacheFolder(env), FAKETIME_LIBRARY);
  return existsSync(path) ? path : undefined;
}

/** As {@link skipWithoutCluster}, for a test that needs wrong clocks besides. */
export function skipWithoutFaketime(env: Environment = process.env): string | false {
  const reason = `no ${FAKETIME_LIBRARY} in ${clusterCacheFolder(env)}; get it with "npm run cluster:build"`;
  return skipWithoutCluster(env) || (findFaketime(env) === undefined && !isPipeline(env) ? reason : false);
}

/** The registry of Docker, for tests of pulls. */
export const REGISTRY_PROGRAM = 'docker-registry';

/** The path of {@link REGISTRY_PROGRAM}: from PATH, or else from the cache. */
export function findRegistry(env: Environment = process.env): string | undefined {
  const path = join(clusterCacheFolder(env), REGISTRY_PROGRAM);
  return findOnPath(REGISTRY_PROGRAM, env) ?? (isExecutable(path) ? path : undefined);
}

/** Why tests that need a registry are skipped; false in a pipeline, where they fail instead. */
export function skipWithoutRegistry(env: Environment = process.env): string | false {
  return findRegistry(env) !== undefined || isPipeline(env)
    ? false
    : `no ${REGISTRY_PROGRAM}; get it with "npm run cluster:build"`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
