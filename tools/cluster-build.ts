// Gets the programs of the end-to-end tests' Kubernetes cluster: `npm run cluster:build`.
//   kube-apiserver           built from the pinned Go module in test/cluster/apiserver
//   kube-controller-manager  built from the same module
//   kubectl                  the one on PATH, else built from the same module
//   helm                     the one on PATH, else built from the pinned Go module in test/cluster/helm
//   etcd                     the one on PATH, else Debian's package, unpacked into the cache (not installed: no service starts)
//   gitops-health            built from the pinned Go module in test/gitops/health: reads status as GitOps tools do
//   oras, crane              built from the pinned Go module in test/registry/clients: they read what we push, and the reverse
//   docker-registry          the one on PATH, else Debian's package, unpacked likewise: a registry for tests of pulls
//   libfaketime              Debian's package, unpacked likewise: processes whose clocks are wrong
// All programs are in the user's cache; when none is missing, the command prints one line and ends.
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import {
  clusterAvailable,
  clusterCacheFolder,
  clusterGoPrograms,
  FAKETIME_LIBRARY,
  findBinary,
  findFaketime,
  findOnPath,
  findRegistry,
  GITOPS_HEALTH,
  goBuildArguments,
  goModuleOf,
  type GoProgram,
  goProgramPath,
  isPipeline,
  kubernetesVersion,
  REGISTRY_CLIENTS,
  REGISTRY_PROGRAM,
} from '../test/cluster/binaries.ts';

/** Interval of progress messages. Milliseconds. */
const PROGRESS_INTERVAL_MS = 10_000;

/** Memory of a Go compiler process for the largest packages, which limits how many run concurrently. Bytes. */
const COMPILER_BYTES = 1024 ** 3;

class BuildError extends Error {}

const cache = clusterCacheFolder();

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Waits for the exit of a child process. Returns its exit code, or -1 when it did not start or was ended by a signal. */
function ended(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(-1));
    child.once('close', (code) => resolve(code ?? -1));
  });
}

/** Starts Go without the user's flags; on machines with little memory, with smaller heaps and more garbage collection. */
function spawnGo(folder: string, args: readonly string[]): ChildProcess {
  const collector = process.availableMemory() < 4 * COMPILER_BYTES ? { GOGC: '50' } : {};
  return spawn('go', args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...collector, ...process.env, GOFLAGS: '', GOWORK: 'off', CGO_ENABLED: '0' },
  });
}

/** Runs `go list`: downloads the module's dependencies when they are missing and returns the number of packages to compile. */
async function downloadAndCount(folder: string, target: string): Promise<number> {
  const child = spawnGo(folder, ['list', '-mod=readonly', '-deps', target]);
  let packages = 0;
  let downloads = 0;
  let problems = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    packages += chunk.toString().split('\n').length - 1;
  });
  createInterface({ input: child.stderr ?? process.stdin }).on('line', (line) => {
    if (!line.startsWith('go: downloading ')) {
      problems += `${line}\n`;
      return;
    }
    downloads += 1;
    if (downloads === 1) {
      say('  downloading Go modules…');
    }
  });
  if ((await ended(child)) !== 0) {
    throw new BuildError(`"go list" failed in ${folder}; is the Go module proxy reachable?\n${problems}`);
  }
  return packages;
}

/** Builds one Go program into the cache, with progress messages. Returns its path. */
async function buildGo(program: GoProgram): Promise<string> {
  if (findOnPath('go') === undefined) {
    throw new BuildError(
      `${program} is built with Go, and no "go" is on PATH. Install Go 1.24 or newer and run this again.`,
    );
  }
  const started = performance.now();
  const seconds = (): string => `${Math.round((performance.now() - started) / 1000)} s`;
  say(`Building ${program} (minutes the first time)…`);
  const folder = goModuleOf(program);
  const args = goBuildArguments(program);
  const total = await downloadAndCount(folder, args.at(-1) ?? '.');
  const atOnce = Math.max(1, Math.min(availableParallelism(), Math.floor(process.availableMemory() / COMPILER_BYTES)));
  const built = goProgramPath(program);
  mkdirSync(dirname(built), { recursive: true });
  const partial = `${built}.${process.pid}.partial`;
  // -v prints each compiled package on stderr; other lines are error messages.
  const child = spawnGo(folder, ['build', '-v', '-p', String(atOnce), '-o', partial, ...args]);
  let compiled = 0;
  const messages: string[] = [];
  createInterface({ input: child.stderr ?? process.stdin }).on('line', (line) => {
    if (/^[\w./~-]+$/.test(line)) {
      compiled += 1;
    } else {
      messages.push(line);
    }
  });
  const ticker = setInterval(
    () => say(`  ${program}: ${compiled} of at most ${total} packages compiled, ${seconds()}`),
    PROGRESS_INTERVAL_MS,
  );
  try {
    if ((await ended(child)) !== 0) {
      throw new BuildError(`"go build" of ${program} failed in ${folder}:\n${messages.join('\n')}`);
    }
    // Renamed when complete, so that concurrent tests never see a partial program.
    renameSync(partial, built);
  } finally {
    clearInterval(ticker);
    rmSync(partial, { force: true });
  }
  say(`  ${program}: ${compiled} packages compiled and linked in ${seconds()}`);
  return built;
}

/** A file of a Debian package. */
interface PackagedFile {
  readonly package: string;
  /** A pattern for its path in the package. */
  readonly file: string;
  /** Its name in the cache. */
  readonly name: string;
  readonly mode: number;
  /** A hint for systems without this package. */
  readonly advice: string;
}

const ETCD: PackagedFile = {
  package: 'etcd-server',
  file: 'usr/bin/etcd',
  name: 'etcd',
  mode: 0o755,
  advice: 'Install etcd 3.4 or newer so that "etcd" is on PATH and run this again.',
};

const REGISTRY: PackagedFile = {
  package: 'docker-registry',
  file: 'usr/bin/docker-registry',
  name: REGISTRY_PROGRAM,
  mode: 0o755,
  advice: `Install the registry of Docker so that "${REGISTRY_PROGRAM}" is on PATH and run this again.`,
};

const FAKETIME: PackagedFile = {
  package: 'libfaketime',
  // The parent folder is named after the processor architecture.
  file: `usr/lib/*/faketime/${FAKETIME_LIBRARY}`,
  name: FAKETIME_LIBRARY,
  mode: 0o644,
  advice: `Put libfaketime 0.9.10 or newer there yourself, as ${join(cache, FAKETIME_LIBRARY)}.`,
};

/** Unpacks one file of a Debian package into the cache. Returns its path. Needs root only when the package lists are missing. */
function unpack({ package: name, file, name: target, mode, advice }: PackagedFile): string {
  if (findOnPath('apt-get') === undefined || findOnPath('dpkg') === undefined) {
    throw new BuildError(
      `${target} is not there, and this machine has no apt-get to fetch Debian's package ${name} with. ${advice}`,
    );
  }
  say(`Fetching ${target} (Debian's package ${name})…`);
  const folder = mkdtempSync(join(cache, `${name}-`));
  try {
    const run = (command: string, ...args: string[]): { done: boolean; output: string } => {
      const result = spawnSync(command, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
      return { done: result.status === 0, output: `${result.stdout}${result.stderr}` };
    };
    let fetched = run('apt-get', 'download', name);
    if (!fetched.done && process.getuid?.() === 0) {
      say('  updating the package lists (apt-get update)…');
      run('apt-get', 'update');
      fetched = run('apt-get', 'download', name);
    }
    const [archive] = globSync('*.deb', { cwd: folder });
    if (!fetched.done || archive === undefined) {
      const lists =
        process.getuid?.() === 0 ? '' : ' Perhaps the package lists are missing: run "apt-get update" as root.';
      throw new BuildError(`"apt-get download ${name}" failed.${lists} ${advice}\n${fetched.output}`);
    }
    const unpacked = run('dpkg', '-x', archive, 'package');
    const [found] = globSync(file, { cwd: join(folder, 'package') });
    if (!unpacked.done || found === undefined) {
      throw new BuildError(`"dpkg -x" of Debian's ${name} gave no ${file}. ${advice}\n${unpacked.output}`);
    }
    const partial = join(folder, 'whole');
    copyFileSync(join(folder, 'package', found), partial);
    chmodSync(partial, mode);
    renameSync(partial, join(cache, target));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return join(cache, target);
}

/** Only one test needs it. If it is not available, that test is skipped, except in a pipeline. */
function unpackFaketime(): string {
  try {
    return unpack(FAKETIME);
  } catch (error) {
    if (!(error instanceof BuildError) || isPipeline()) {
      throw error;
    }
    return `none, tests of clocks skip: ${error.message}`;
  }
}

async function main(): Promise<void> {
  const others = [GITOPS_HEALTH, ...REGISTRY_CLIENTS] as const;
  for (const program of others.filter((name) => !existsSync(goProgramPath(name)))) {
    await buildGo(program);
  }
  const before = clusterAvailable();
  const faketime = findFaketime();
  const registry = findRegistry();
  if (before.available && faketime !== undefined && registry !== undefined) {
    const all = [...Object.values(before.binaries), faketime, registry, ...others.map((name) => goProgramPath(name))];
    say(`The test cluster is ready (Kubernetes ${kubernetesVersion()}): ${all.join(', ')}`);
    return;
  }
  mkdirSync(cache, { recursive: true });
  const programs = {
    etcd: findBinary('etcd') ?? unpack(ETCD),
    [REGISTRY_PROGRAM]: registry ?? unpack(REGISTRY),
    libfaketime: faketime ?? unpackFaketime(),
  };
  for (const program of clusterGoPrograms) {
    Object.assign(programs, { [program]: findBinary(program) ?? (await buildGo(program)) });
  }
  say(`The test cluster is ready (Kubernetes ${kubernetesVersion()}):`);
  say(
    Object.entries(programs)
      .map(([name, path]) => `  ${name.padEnd(24)}${path}`)
      .join('\n'),
  );
}

try {
  await main();
} catch (error) {
  if (!(error instanceof BuildError)) {
    throw error;
  }
  process.stderr.write(`error: ${error.message}\n`);
  process.exitCode = 1;
}
