// Builds the guest programs of examples/, test/fixtures/guests/ and test/fixtures/scaffold/ from their sources, and
// examples/registry from one of them.
// `npm run examples:build`.
//
//   examples.ts [--check] [NAME...]
//
// A guest is built when its toolchain is installed, and its sources changed since the last build or its name is given.
// `--check` writes nothing. It fails when a committed .wasm is not that of the last build, when a source changed since, or
// when a new build with the same toolchain gives other bytes. examples/toolchains.json records the toolchain, the digest of
// the sources and the digest of the module for each guest.
import { execFileSync, type ExecFileSyncOptions } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, join, relative, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { load } from 'js-yaml';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');
const recordFile = join(root, 'examples', 'toolchains.json');
/** The folder for toolchains that are not installed on the machine, see examples/README.md. */
const privateTools = join(root, '.cache', 'tools');
const npmPackage = (name: string): string => join(root, 'node_modules', name);

/** The toolchain of one language. */
interface Toolchain {
  /** Its version, so exact that equal versions build equal bytes; undefined when it is not installed. */
  version(): string | undefined;
  /** How to install it. */
  readonly hint: string;
}

/** One guest program: a folder of examples/, or one file of the fixtures. */
interface Guest {
  /** The name on the command line and in the record, such as `examples/required-labels`. */
  readonly name: string;
  readonly wasm: string;
  readonly toolchain: keyof typeof toolchains;
  /** Source files and folders, relative to the repository. */
  readonly inputs: readonly string[];
  /** The metadata; undefined for a module without the section. */
  readonly metadata: () => unknown;
  /** @param scratch an empty folder */
  readonly build: (scratch: string) => Uint8Array;
}

interface Built {
  toolchain: string;
  sources: string;
  bytes: number;
  sha256: string;
}

// ---------------------------------------------------------------------------------------------------------------------
// Toolchains

function run(command: string, args: readonly string[], options: ExecFileSyncOptions = {}): string {
  return execFileSync(command, args, { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8', ...options }).toString();
}

function firstLineOf(command: string, args: readonly string[], options: ExecFileSyncOptions = {}): string | undefined {
  try {
    return run(command, args, options).split('\n')[0]?.trim();
  } catch {
    return undefined;
  }
}

function packageVersions(...names: readonly string[]): string | undefined {
  const files = names.map((name) => join(npmPackage(name), 'package.json'));
  return files.every((file) => existsSync(file))
    ? files.map((file, index) => `${names[index]} ${versionIn(file)}`).join(', ')
    : undefined;
}

function versionIn(manifest: string): string {
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}

const opa = existsSync(join(privateTools, 'opa')) ? join(privateTools, 'opa') : 'opa';

/** A private toolchain, which builds the standard library with the policy, is preferred. */
const privateRust = existsSync(join(privateTools, 'bin', 'rustc'));
const rustc = privateRust ? join(privateTools, 'bin', 'rustc') : 'rustc';
const rustTarget = 'wasm32-unknown-unknown';

function rustVersion(): string | undefined {
  const compiler = firstLineOf(rustc, ['--version']);
  const cargo = firstLineOf('cargo', ['--version'], { cwd: join(root, 'examples') });
  if (compiler === undefined || cargo === undefined) {
    return undefined;
  }
  if (privateRust) {
    const linker = firstLineOf(join(privateTools, 'bin', 'rust-lld'), ['--version']);
    return `${compiler}, ${cargo}, ${linker ?? ''}, std from source`;
  }
  const std = firstLineOf(rustc, ['--print', 'target-libdir', '--target', rustTarget]);
  return std !== undefined && existsSync(std) ? `${compiler}, ${cargo}` : undefined;
}

const goEnvironment = {
  ...process.env,
  GOOS: 'wasip1',
  GOARCH: 'wasm',
  GOTOOLCHAIN: 'local',
  GOFLAGS: '',
  CGO_ENABLED: '0',
};

const toolchains = {
  assemblyscript: { version: () => packageVersions('assemblyscript', 'binaryen'), hint: 'it comes with npm ci' },
  wat: { version: () => packageVersions('binaryen'), hint: 'it comes with npm ci' },
  go: {
    version: () => firstLineOf('go', ['env', 'GOVERSION'], { env: goEnvironment }),
    hint: 'install Go',
  },
  opa: {
    version: () => {
      const line = firstLineOf(opa, ['version']);
      return line?.startsWith('Version: ') ? `opa ${line.slice('Version: '.length)}` : undefined;
    },
    hint: 'GOBIN=$PWD/.cache/tools go install github.com/open-policy-agent/opa@v1.22.0',
  },
  rust: { version: rustVersion, hint: `install Rust with the target ${rustTarget}, see examples/README.md` },
} satisfies Record<string, Toolchain>;

/** Without a garbage collector: the sandbox restores memory after every call. */
const assemblyScriptOptions = '-O3 --converge --runtime stub --exportStart wapc_init'.split(' ');

function assemblyScript(folder: string, source: string): (scratch: string) => Uint8Array {
  return (scratch) => {
    const output = join(scratch, 'policy.wasm');
    run(
      process.execPath,
      [
        join(npmPackage('assemblyscript'), 'bin', 'asc.js'),
        `${folder}/${source}`,
        ...assemblyScriptOptions,
        '--use',
        'abort=examples/assemblyscript/wapc/onAbort',
        '--outFile',
        relative(root, output),
      ],
      { cwd: root },
    );
    return readFileSync(output);
  };
}

function webAssemblyText(source: string): (scratch: string) => Uint8Array {
  return (scratch) => {
    const output = join(scratch, 'policy.wasm');
    const features = [
      'bulk-memory',
      'gc',
      'mutable-globals',
      'nontrapping-float-to-int',
      'reference-types',
      'sign-ext',
    ];
    const enable = features.map((feature) => `--enable-${feature}`);
    run(process.execPath, [join(npmPackage('binaryen'), 'bin', 'wasm-as'), ...enable, source, '-o', output], {
      cwd: root,
    });
    return readFileSync(output);
  };
}

function go(folder: string): (scratch: string) => Uint8Array {
  return (scratch) => {
    const output = join(scratch, 'policy.wasm');
    const flags = ['-trimpath', '-buildvcs=false', '-mod=readonly', '-ldflags=-s -w -buildid='];
    run('go', ['build', ...flags, '-o', output, '.'], { cwd: join(root, folder), env: goEnvironment });
    return readFileSync(output);
  };
}

function rego(folder: string, entrypoint: string): (scratch: string) => Uint8Array {
  return (scratch) => {
    const output = join(scratch, 'bundle.tar.gz');
    run(opa, ['build', '-t', 'wasm', '-e', entrypoint, '-o', output, 'policy.rego'], { cwd: join(root, folder) });
    return fileInTar(gunzipSync(readFileSync(output)), '/policy.wasm');
  };
}

function rust(folder: string): (scratch: string) => Uint8Array {
  return () => {
    // Kept between builds, because the standard library and the dependencies take minutes.
    const target = join(root, '.cache', 'cargo-target');
    const cargoHome = process.env['CARGO_HOME'] ?? join(homedir(), '.cargo');
    const sysroot = run(rustc, ['--print', 'sysroot']).trim();
    run('cargo', ['fetch', '--locked'], { cwd: join(root, folder) });
    const registry = join(cargoHome, 'registry', 'src');
    // The compiler uses the last matching prefix, so the longest path comes last. The names of registry folders depend on the
    // URL of the index, which must not change the bytes.
    const remap = [
      [root, '/portcullis'],
      [sysroot, '/rust'],
      ...readdirSync(registry).map((folderOfIndex) => [join(registry, folderOfIndex), '/crates']),
    ].map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
    const env: NodeJS.ProcessEnv = {
      ...process.env,
      RUSTC: rustc,
      CARGO_TARGET_DIR: target,
      CARGO_ENCODED_RUSTFLAGS: remap.join('\x1f'),
    };
    const args = ['build', '--release', '--locked', '--target', rustTarget];
    if (privateRust) {
      args.push('-Z', 'build-std=std,panic_abort');
      env['RUSTC_BOOTSTRAP'] = '1';
      env['CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER'] = join(privateTools, 'bin', 'rust-lld');
    }
    run('cargo', args, { cwd: join(root, folder), env });
    return readFileSync(join(target, rustTarget, 'release', `${basename(folder).replaceAll('-', '_')}.wasm`));
  };
}

function fileInTar(tar: Uint8Array, name: string): Uint8Array {
  const text = (at: number, length: number): string =>
    Buffer.from(tar.subarray(at, at + length))
      .toString('latin1')
      .split('\0')[0] ?? '';
  for (let at = 0; at + 512 <= tar.length;) {
    const size = Number.parseInt(text(at + 124, 12), 8) || 0;
    if (text(at, 100) === name) {
      return tar.slice(at + 512, at + 512 + size);
    }
    at += 512 + Math.ceil(size / 512) * 512;
  }
  throw new Error(`the bundle has no ${name}`);
}

// ---------------------------------------------------------------------------------------------------------------------
// The guests

type Builder = { toolchain: keyof typeof toolchains; build: (folder: string) => (scratch: string) => Uint8Array };

const assemblyScriptPolicy: Builder = {
  toolchain: 'assemblyscript',
  build: (folder) => assemblyScript(folder, 'policy.ts'),
};
const rustPolicy: Builder = { toolchain: 'rust', build: rust };
const goPolicy: Builder = { toolchain: 'go', build: go };
const regoPolicy = (entrypoint: string): Builder => ({ toolchain: 'opa', build: (folder) => rego(folder, entrypoint) });

const examples: Record<string, Builder> = {
  'required-labels': assemblyScriptPolicy,
  'default-seccomp': assemblyScriptPolicy,
  'namespace-owner': assemblyScriptPolicy,
  'pod-privileged': rustPolicy,
  'image-registries': goPolicy,
  'host-namespaces': regoPolicy('policy/main'),
  'container-limits': regoPolicy('policy/violation'),
};

/** Files of an example that are not sources. */
const notSources = new Set([
  'policy.wasm',
  'README.md',
  'requests',
  'policy.yaml',
  'session.yml',
  'policy.yaml',
  'portcullis-test.yml',
]);

/** What `portcullis scaffold policy owner-label --language …` writes. */
const scaffolds: Record<string, Builder> = {
  rego: regoPolicy('policy/main'),
  gatekeeper: regoPolicy('policy/violation'),
};

function folderGuest(folder: string, builder: Builder): Guest {
  const own = readdirSync(join(root, folder)).filter((file) => !notSources.has(file) && !file.endsWith('_test.rego'));
  return {
    name: folder,
    wasm: `${folder}/policy.wasm`,
    toolchain: builder.toolchain,
    inputs: [
      ...own.map((file) => `${folder}/${file}`),
      ...(builder.toolchain === 'assemblyscript' ? ['examples/assemblyscript'] : []),
    ],
    metadata: () => load(readFileSync(join(root, folder, 'metadata.yml'), 'utf8')),
    build: builder.build(folder),
  };
}

const fixtures = 'test/fixtures/guests';

/** The metadata of a fixture besides the common part; `null` for a module without the section. */
const fixtureMetadata: Record<string, object | null> = {
  'no-metadata': null,
  'protocol-v2': { protocolVersion: 'v2' },
  'minimum-version-99': { minimumKubewardenVersion: '99.0.0' },
  'echo-host-call': {
    contextAwareResources: [{ apiVersion: 'v1', kind: 'Namespace' }],
    hostCapabilities: ['*'],
  },
  'scripted-answer': { mutating: true },
  'wasi-host-call': { mutating: true, hostCapabilities: ['net/v1/dns_lookup_host'] },
};

function fixtureGuests(): Guest[] {
  if (!existsSync(join(root, fixtures))) {
    return [];
  }
  return readdirSync(join(root, fixtures))
    .filter((file) => file.endsWith('.wat') || file.endsWith('.ts'))
    .sort()
    .map((file) => {
      const source = `${fixtures}/${file}`;
      const name = file.replace(/\.\w+$/, '');
      const special = fixtureMetadata[name];
      const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] }];
      const isText = file.endsWith('.wat');
      return {
        name: `${fixtures}/${name}`,
        wasm: `${fixtures}/${name}.wasm`,
        toolchain: isText ? 'wat' : 'assemblyscript',
        inputs: isText ? [source] : [source, 'examples/assemblyscript'],
        metadata: () =>
          special === null
            ? undefined
            : {
                protocolVersion: 'v1',
                executionMode: name.startsWith('wasi-') ? 'wasi' : 'kubewarden-wapc',
                policyType: 'kubernetes',
                mutating: false,
                rules,
                ...special,
              },
        build: isText ? webAssemblyText(source) : assemblyScript(fixtures, file),
      };
    });
}

// ---------------------------------------------------------------------------------------------------------------------
// Bytes

const METADATA_SECTION = 'io.kubewarden.metadata';

function unsignedLeb128(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    bytes.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    rest >>>= 7;
  } while (rest > 0);
  return bytes;
}

/** The module with the metadata as a custom section at its end. */
function withMetadata(wasm: Uint8Array, metadata: unknown): Uint8Array {
  if (metadata === undefined) {
    return wasm;
  }
  const name = Buffer.from(METADATA_SECTION);
  const content = Buffer.concat([
    Buffer.from(unsignedLeb128(name.length)),
    name,
    Buffer.from(JSON.stringify(metadata)),
  ]);
  return Buffer.concat([wasm, Buffer.from([0, ...unsignedLeb128(content.length)]), content]);
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function filesUnder(path: string): string[] {
  if (statSync(path).isFile()) {
    return [path];
  }
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** One digest over the names and contents of all sources. */
function sourceDigest(guest: Guest): string {
  const hash = createHash('sha256');
  for (const file of guest.inputs.flatMap((input) => filesUnder(join(root, input)))) {
    hash.update(`${relative(root, file).split(sep).join('/')}\0${sha256(readFileSync(file))}\n`);
  }
  hash.update(JSON.stringify(guest.metadata() ?? null));
  return hash.digest('hex');
}

/** Refuses modules with local paths: another machine would build other bytes. */
function refuseLocalPaths(guest: Guest, wasm: Uint8Array): void {
  const text = Buffer.from(wasm).toString('latin1');
  for (const path of [root, homedir(), tmpdir()]) {
    if (path.length > 1 && text.includes(`${path}/`)) {
      throw new Error(`${guest.name}: the module contains the path ${path}; map it away in the build`);
    }
  }
}

function buildGuest(guest: Guest): Uint8Array {
  const parent = join(root, '.cache');
  mkdirSync(parent, { recursive: true });
  const scratch = mkdtempSync(join(parent, 'guest-'));
  try {
    const wasm = withMetadata(guest.build(scratch), guest.metadata());
    refuseLocalPaths(guest, wasm);
    return wasm;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The command

interface Outcome {
  /** The result in the table. */
  readonly text: string;
  readonly failed: boolean;
  /** The new entry of the record. */
  readonly built?: Built;
}

const good = (text: string, built?: Built): Outcome => ({
  text,
  failed: false,
  ...(built === undefined ? {} : { built }),
});
const bad = (text: string): Outcome => ({ text, failed: true });

/** How the committed module or its record differs from the sources; undefined when it does not. */
function drift(guest: Guest, recorded: Built | undefined, sources: string): string | undefined {
  const file = join(root, guest.wasm);
  if (recorded === undefined || !existsSync(file)) {
    return 'never built';
  }
  if (sha256(readFileSync(file)) !== recorded.sha256) {
    return 'the .wasm is not the one that was built last';
  }
  return sources === recorded.sources ? undefined : 'its sources changed since it was built';
}

function check(guest: Guest, recorded: Built | undefined, version: string | undefined): Outcome {
  const drifted = drift(guest, recorded, sourceDigest(guest));
  if (drifted !== undefined || recorded === undefined) {
    return bad(`${drifted ?? 'never built'}: run npm run examples:build`);
  }
  if (version !== recorded.toolchain) {
    const here = version === undefined ? `there is no ${guest.toolchain} here` : `${version} is here`;
    return good(`its sources are unchanged; not rebuilt: ${here}, it was built with ${recorded.toolchain}`);
  }
  const digest = sha256(buildGuest(guest));
  return digest === recorded.sha256
    ? good('unchanged')
    : bad(`a new build differs (${digest}): run npm run examples:build`);
}

function rebuild(guest: Guest, recorded: Built | undefined, version: string | undefined, forced: boolean): Outcome {
  const sources = sourceDigest(guest);
  const reason = drift(guest, recorded, sources);
  if (version === undefined) {
    const why = `skipped: no ${guest.toolchain} (${toolchains[guest.toolchain].hint})`;
    return reason === undefined ? good(why) : bad(`${why}, but ${reason}`);
  }
  if (!forced && reason === undefined && recorded?.toolchain === version) {
    return good('up to date');
  }
  const wasm = buildGuest(guest);
  const digest = sha256(wasm);
  writeFileSync(join(root, guest.wasm), wasm);
  const text = digest === recorded?.sha256 ? 'rebuilt, unchanged' : 'rebuilt';
  return good(text, { toolchain: version, sources, bytes: wasm.length, sha256: digest });
}

function failureText(error: unknown): string {
  const { stderr, stdout, message } = error as { stderr?: string; stdout?: string; message: string };
  return `failed: ${[stderr, stdout].filter((text) => text !== undefined && text !== '').join('\n') || message}`;
}

function main(): number {
  const { values, positionals } = parseArgs({
    options: { check: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const record = readRecord();
  const all = [
    ...Object.entries(examples).map(([name, builder]) => folderGuest(`examples/${name}`, builder)),
    ...fixtureGuests(),
    ...Object.entries(scaffolds).map(([name, builder]) => folderGuest(`test/fixtures/scaffold/${name}`, builder)),
  ];
  const unknown = positionals.filter(
    (name) => !all.some((guest) => guest.name === name || basename(guest.name) === name),
  );
  if (unknown.length > 0) {
    console.error(
      `error: no guest is called ${unknown.join(', ')}; there are ${all.map((guest) => basename(guest.name)).join(', ')}`,
    );
    return 2;
  }
  const isNamed = (guest: Guest): boolean =>
    positionals.includes(guest.name) || positionals.includes(basename(guest.name));
  const chosen = positionals.length === 0 ? all : all.filter(isNamed);
  const versions = new Map(Object.entries(toolchains).map(([name, toolchain]) => [name, toolchain.version()]));
  const width = Math.max(...chosen.map((guest) => guest.name.length));
  let failures = 0;
  for (const guest of chosen) {
    const recorded = record[guest.name];
    const version = versions.get(guest.toolchain);
    let outcome: Outcome;
    try {
      outcome = values.check
        ? check(guest, recorded, version)
        : rebuild(guest, recorded, version, positionals.length > 0);
    } catch (error) {
      outcome = bad(failureText(error));
    }
    if (outcome.built !== undefined) {
      record[guest.name] = outcome.built;
      // Read again, because a concurrent run may have built other guests.
      writeFileSync(recordFile, recordText({ ...readRecord(), [guest.name]: outcome.built }, all));
    }
    failures += outcome.failed ? 1 : 0;
    const size = `${((record[guest.name]?.bytes ?? 0) / 1024).toFixed(1)} KiB`;
    console.log(`${guest.name.padEnd(width)}  ${guest.toolchain.padEnd(14)}  ${size.padStart(11)}  ${outcome.text}`);
  }
  return failures === 0 ? 0 : 1;
}

function readRecord(): Record<string, Built> {
  return existsSync(recordFile) ? (JSON.parse(readFileSync(recordFile, 'utf8')) as Record<string, Built>) : {};
}

/** The record in the order of the guests, without removed ones. */
function recordText(record: Record<string, Built>, all: readonly Guest[]): string {
  const kept = all.flatMap((guest) => {
    const built = record[guest.name];
    return built === undefined ? [] : [[guest.name, built]];
  });
  return `${JSON.stringify(Object.fromEntries(kept), undefined, 2)}\n`;
}

process.exitCode = main();
// After the builds, because it contains one of the modules.
await import('./example-registry.ts');
