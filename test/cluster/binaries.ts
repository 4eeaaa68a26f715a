// Finds the programs of the test cluster. They are in a cache of the user, which all clones on a machine share.
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The Go module that pins the Kubernetes release. */
const kubernetesModule = fileURLToPath(new URL('./apiserver', import.meta.url));
/** The Go module that pins helm. */
const helmModule = fileURLToPath(new URL('./helm', import.meta.url));
/** The Go module that pins the health libraries of GitOps tools. */
const healthModule = fileURLToPath(new URL('../gitops/health', import.meta.url));

/** The Go module that pins clients of registries. */
const clientsModule = fileURLToPath(new URL('../registry/clients', import.meta.url));

/** The program that computes health as GitOps tools do. It is not part of a cluster, so it is cached separately. */
export const GITOPS_HEALTH = 'gitops-health';

/** The programs that are built with Go, with the folder of their module and their package in it. */
const goPrograms = {
  'kube-apiserver': { folder: kubernetesModule, target: '.' },
  'kube-controller-manager': { folder: kubernetesModule, target: './controller-manager' },
  kubectl: { folder: kubernetesModule, target: './kubectl' },
  helm: { folder: helmModule, target: 'helm.sh/helm/v3/cmd/helm' },
  [GITOPS_HEALTH]: { folder: healthModule, target: '.' },
  oras: { folder: clientsModule, target: 'oras.land/oras/cmd/oras' },
  crane: { folder: clientsModule, target: 'github.com/google/go-containerregistry/cmd/crane' },
} as const;

/** A program that is built with Go. */
export type GoProgram = keyof typeof goPrograms;

/** Source files of the programs. The name of the cache folder contains their hash. */
const goSources = [
  ...['go.mod', 'go.sum', 'main.go', 'controller-manager/main.go', 'kubectl/main.go'].map((file) =>
    join(kubernetesModule, file),
  ),
  ...['go.mod', 'go.sum'].map((file) => join(helmModule, file)),
];

/** The Go programs of the cluster, in the order in which they are built. */
export const clusterGoPrograms = [
  'kube-apiserver',
  'kube-controller-manager',
  'kubectl',
  'helm',
] as const satisfies GoProgram[];

/** Source files of {@link GITOPS_HEALTH}. */
const healthSources = ['go.mod', 'go.sum', 'main.go'].map((file) => join(healthModule, file));

/** Clients of registries, which read what we write and the reverse. They are cached separately, too. */
export const REGISTRY_CLIENTS = ['oras', 'crane'] as const satisfies GoProgram[];

export type RegistryClientProgram = (typeof REGISTRY_CLIENTS)[number];

/** Source files of {@link REGISTRY_CLIENTS}. */
const clientSources = ['go.mod', 'go.sum'].map((file) => join(clientsModule, file));

/** The programs of the test cluster, by absolute path. */
export interface ClusterBinaries {
  readonly 'kube-apiserver': string;
  readonly 'kube-controller-manager': string;
  readonly etcd: string;
  readonly kubectl: string;
  readonly helm: string;
}

export type ClusterBinary = keyof ClusterBinaries;

/** In the order of messages about missing programs. */
const binaryNames = [
  'kube-apiserver',
  'kube-controller-manager',
  'etcd',
  'kubectl',
  'helm',
] as const satisfies ClusterBinary[];

/** Programs that are taken from PATH if installed there, because their release does not matter. */
const mayBeInstalled: ReadonlySet<ClusterBinary> = new Set(['etcd', 'kubectl', 'helm']);

/** Environment variables. Those that are read are PATH, CI, PORTCULLIS_CACHE and XDG_CACHE_HOME. */
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

/** Arguments of `go build` for a program, except `-p` and `-o`. The linker sets the Kubernetes release that programs report. */
export function goBuildArguments(program: GoProgram): string[] {
  const { folder, target } = goPrograms[program];
  const version = kubernetesVersion();
  const [major, minor] = version.slice(1).split('.');
  const linkedByModule: Readonly<Record<string, object>> = {
    // By default, helm assumes Kubernetes 1.20.
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
 * The folder with the programs of the cluster: `cluster/<release and hash of the sources>` in `$PORTCULLIS_CACHE`, or else in the
 * folder `portcullis` of the user's cache folder. It may not exist.
 */
export function clusterCacheFolder(env: Environment = process.env): string {
  const name = [kubernetesVersion(), platform, hashOf(goSources, clusterGoPrograms)].join('-');
  return join(cacheFolder(env), 'cluster', name);
}

/** The path of {@link GITOPS_HEALTH} in the cache. It may not exist. */
export function gitOpsHealthPath(env: Environment = process.env): string {
  const name = [platform, hashOf(healthSources, [GITOPS_HEALTH])].join('-');
  return join(cacheFolder(env), 'gitops', name, GITOPS_HEALTH);
}

/** The path of a Go program in the cache. It may not exist. */
export function goProgramPath(program: GoProgram, env: Environment = process.env): string {
  switch (program) {
    case GITOPS_HEALTH:
      return gitOpsHealthPath(env);
    case 'oras':
    case 'crane': {
      const name = [platform, hashOf(clientSources, REGISTRY_CLIENTS)].join('-');
      return join(cacheFolder(env), 'registry-clients', name, program);
    }
    default:
      return join(clusterCacheFolder(env), program);
  }
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

/** The path of a program on PATH. Undefined when it is not installed. */
export function findOnPath(name: string, env: Environment = process.env): string | undefined {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The path of a program of the cluster. etcd, kubectl and helm are searched on PATH first; others only in the cache. */
export function findBinary(name: ClusterBinary, env: Environment = process.env): string | undefined {
  const installed = mayBeInstalled.has(name) ? findOnPath(name, env) : undefined;
  if (installed !== undefined) {
    return installed;
  }
  const cached = join(clusterCacheFolder(env), name);
  return isExecutable(cached) ? cached : undefined;
}

/** The programs of a cluster, or a sentence that says which are missing and how to get them. */
export type ClusterAvailability =
  | { readonly available: true; readonly binaries: ClusterBinaries }
  | { readonly available: false; readonly reason: string };

/** Finds the programs of a cluster, without starting them. */
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
 * The `skip` option of a test that needs a cluster: the reason if programs are missing, else `false`. In a pipeline it is always
 * `false`, so that the test fails with that reason instead of being skipped.
 */
export function skipWithoutCluster(env: Environment = process.env): string | false {
  const availability = clusterAvailable(env);
  return availability.available || isPipeline(env) ? false : availability.reason;
}

/** Like {@link skipWithoutCluster}, for tests that need {@link GITOPS_HEALTH}. */
export function skipWithoutGitOpsHealth(env: Environment = process.env): string | false {
  const path = gitOpsHealthPath(env);
  return isExecutable(path) || isPipeline(env) ? false : `no ${path}; build it with "npm run cluster:build"`;
}

/** Whether the tests run in a pipeline, where skipped tests would go unnoticed. */
export function isPipeline(env: Environment = process.env): boolean {
  return !['', 'false', '0', undefined].includes(env['CI']);
}

/** The library that changes the clock of a process; see `wrong-clock.ts`. */
export const FAKETIME_LIBRARY = 'libfaketimeMT.so.1';

/** The path of {@link FAKETIME_LIBRARY} in the cache. Undefined when it is missing. */
export function findFaketime(env: Environment = process.env): string | undefined {
  const path = join(clusterCacheFolder(env), FAKETIME_LIBRARY);
  return existsSync(path) ? path : undefined;
}

/** Like {@link skipWithoutCluster}, for tests that also need wrong clocks. */
export function skipWithoutFaketime(env: Environment = process.env): string | false {
  const reason = `no ${FAKETIME_LIBRARY} in ${clusterCacheFolder(env)}; get it with "npm run cluster:build"`;
  return skipWithoutCluster(env) || (findFaketime(env) === undefined && !isPipeline(env) ? reason : false);
}

/** Docker's registry, for tests that pull modules. */
export const REGISTRY_PROGRAM = 'docker-registry';

/** The path of {@link REGISTRY_PROGRAM}: from PATH, or else from the cache. */
export function findRegistry(env: Environment = process.env): string | undefined {
  const path = join(clusterCacheFolder(env), REGISTRY_PROGRAM);
  return findOnPath(REGISTRY_PROGRAM, env) ?? (isExecutable(path) ? path : undefined);
}

/** Like {@link skipWithoutCluster}, for tests that need a registry. */
export function skipWithoutRegistry(env: Environment = process.env): string | false {
  return findRegistry(env) !== undefined || isPipeline(env)
    ? false
    : `no ${REGISTRY_PROGRAM}; get it with "npm run cluster:build"`;
}

/** Like {@link skipWithoutRegistry}, for tests that also need {@link REGISTRY_CLIENTS}. */
export function skipWithoutRegistryClients(env: Environment = process.env): string | false {
  const missing = REGISTRY_CLIENTS.map((client) => goProgramPath(client, env)).find((path) => !isExecutable(path));
  const reason = `no ${missing}; build it with "npm run cluster:build"`;
  return skipWithoutRegistry(env) || (missing === undefined || isPipeline(env) ? false : reason);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
