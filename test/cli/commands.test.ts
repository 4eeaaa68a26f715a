// The program as a whole, and the commands inspect, annotate, bench and completion.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DEFAULT_MEMORY_LIMIT_BYTES } from '../../src/modules/compiling/index.ts';
import { withCustomSection } from '../../src/modules/metadata/custom-section.ts';
import { METADATA_SECTION } from '../../src/modules/index.ts';
import { type CommandResult, EXAMPLES, GUESTS, portcullis, REQUEST, ROOT, run } from './command.ts';

const LABELS = `${EXAMPLES}/required-labels`;
const MODULE_START = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-cli-'));
});
after(() => rm(folder, { recursive: true }));

describe('portcullis', { concurrency: 2 }, () => {
  it('prints its version, and its commands', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    assert.equal((await portcullis(['--version'])).stdout, `${version}\n`);
    const { stdout, code } = await portcullis(['--help']);
    assert.equal(code, 0);
    for (const command of [
      'start',
      'serve',
      'controller',
      'rollout',
      'run',
      'test',
      'export',
      'inspect',
      'pull',
      'digest',
      'annotate',
      'bench',
      'completion',
      'reset',
    ]) {
      assert.match(stdout, new RegExp(`^  ${command} `, 'm'));
    }
  });

  it('lists its commands by purpose, with first steps, on lines of a terminal', async () => {
    const { stdout } = await portcullis(['--help']);
    assert.match(
      stdout,
      /^Try it:\n {2}start .*\n[^]*^Write and test policies:\n[^]*^Examples:\n {2}portcullis start/m,
    );
    for (const command of [[], ['run'], ['controller']]) {
      const help = (await portcullis([...command, '--help'])).stdout;
      assert.deepEqual(
        help
          .split('\n')
          .filter((line) => line.length > 80 && !/^(?:Usage| {2}\S*portcullis| {2}kubectl| {4}--)/.test(line)),
        [],
      );
    }
  });

  it('prints its version as kubectl does, without a cluster', async () => {
    assert.match((await portcullis(['version', '--client'])).stdout, /^Client Version: v\d+\.\d+\.\d+\n$/);
  });

  it('suggests a similar command, and exits with 2', async () => {
    const { stderr, code } = await portcullis(['rnu']);
    assert.equal(code, 2);
    assert.match(stderr, /unknown command 'rnu'\n\(Did you mean run\?\)/);
  });

  it('suggests a similar subcommand', async () => {
    const { stderr, code } = await portcullis(['rollout', 'undu', 'cap/x']);
    assert.equal(code, 2);
    assert.match(stderr, /unknown command 'undu'\n\(Did you mean undo\?\)/);
  });

  for (const command of ['serve', 'controller', 'rollout', 'rollout undo', 'run', 'test', 'export', 'reset']) {
    it(`shows how to use ${command}, with an example`, async () => {
      const { stdout, code } = await portcullis([...command.split(' '), '--help']);
      assert.equal(code, 0);
      assert.match(stdout, /^Examples?:\n {2}\S/m);
    });
  }
});

describe('portcullis inspect', { concurrency: 2 }, () => {
  const inspect = (...args: readonly string[]): Promise<CommandResult> => portcullis(['inspect', ...args]);

  it('shows the metadata of a module and how the sandbox runs it', async () => {
    const { stdout, stderr, code } = await inspect(`${EXAMPLES}/namespace-owner/policy.wasm`);
    assert.equal(code, 0);
    assert.equal(stderr, '');
    assert.match(stdout, /^namespace-owner 1\.0\.0\n/);
    assert.match(stdout, /Kind +waPC/);
    assert.match(stdout, /Reads from cluster +v1\/Namespace/);
    assert.match(stdout, /API GROUPS +VERSIONS +RESOURCES +OPERATIONS\n +"" +v1 +pods/);
    assert.match(stdout, /Isolation +restore/);
  });

  it('prints the same as data', async () => {
    const json = JSON.parse((await inspect(`${EXAMPLES}/image-registries/policy.wasm`, '-o', 'json')).stdout) as {
      executionMode: string;
      digest: string;
      sandbox: { isolation: string; memoryLimitBytes: number };
      problems: string[];
    };
    assert.equal(json.executionMode, 'wasi');
    assert.match(json.digest, /^sha256:[0-9a-f]{64}$/);
    assert.equal(json.sandbox.isolation, 'restore');
    assert.equal(json.sandbox.memoryLimitBytes, DEFAULT_MEMORY_LIMIT_BYTES);
    assert.deepEqual(json.problems, []);
    assert.match((await inspect(`${LABELS}/policy.wasm`, '-o', 'yaml')).stdout, /^executionMode: kubewarden-wapc$/m);
  });

  it('gives the reason when a module needs a new instance for every call', async () => {
    const { stdout } = await inspect(`${GUESTS}/stateful-segments.wasm`, '-o', 'json');
    const { sandbox } = JSON.parse(stdout) as { sandbox: { isolation: string } };
    assert.equal(sandbox.isolation, 'fresh');
    const text = (await inspect(`${GUESTS}/stateful-segments.wasm`)).stdout;
    assert.match(text, /Isolation +fresh \(a new instance for every call: .*segment/);
  });

  it('measures what a new instance costs, for modules of every kind', async () => {
    for (const example of ['pod-privileged', 'image-registries', 'container-limits', 'host-namespaces']) {
      const { stdout } = await inspect(`${EXAMPLES}/${example}/policy.wasm`, '-o', 'json');
      const { newInstance } = (JSON.parse(stdout) as { sandbox: { newInstance: Record<string, number> } }).sandbox;
      assert.deepEqual(Object.keys(newInstance), ['processorMicroseconds', 'heldBytes']);
      assert.ok((newInstance['heldBytes'] ?? 0) > 0, example);
    }
    const { stdout } = await inspect(`${EXAMPLES}/pod-privileged/policy.wasm`);
    assert.match(stdout, /New instance +[\d.]+ (µs|ms) of processor time on this machine, holds \d/);
  });

  for (const [guest, reason] of [
    ['no-metadata', /protocolVersion/],
    ['minimum-version-99', /Kubewarden 99/],
    ['unknown-import', /env\.mystery/],
  ] as const) {
    it(`shows ${guest} and why no server would load it`, async () => {
      const { stdout, stderr, code } = await inspect(`${GUESTS}/${guest}.wasm`);
      assert.equal(code, 1);
      assert.match(stdout, /Digest +sha256:/);
      assert.match(stderr, reason);
    });
  }

  it('refuses a file that is not a module', async () => {
    const { stdout, stderr, code } = await inspect('package.json');
    assert.equal(code, 1);
    assert.equal(stdout, '');
    assert.match(stderr, /package\.json is not a WebAssembly module: .*got JSON text/);
  });
});

describe('portcullis annotate', { concurrency: 2 }, () => {
  const bare = `${GUESTS}/no-metadata.wasm`;
  const annotate = (...args: readonly string[]): Promise<CommandResult> => portcullis(['annotate', ...args]);
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };

  it('writes metadata and usage, and determines execution mode and protocol', async () => {
    const metadata = await file(
      'bare.yml',
      'rules: []\nmutating: false\nannotations:\n  io.kubewarden.policy.title: mine\n',
    );
    const usage = await file('usage.md', '# How to use it\n');
    const output = join(folder, 'annotated.wasm');
    const written = await annotate(bare, '-m', metadata, '-u', usage, '-o', output);
    assert.equal(written.code, 0, written.stderr);
    assert.match(written.stdout, /^Wrote .*annotated\.wasm: kubewarden-wapc policy, .*, sha256:/);
    const report = JSON.parse((await portcullis(['inspect', output, '-o', 'json'])).stdout) as {
      metadata: { protocolVersion: string; executionMode: string; annotations: Record<string, string> };
    };
    assert.equal(report.metadata.protocolVersion, 'v1');
    assert.equal(report.metadata.executionMode, 'kubewarden-wapc');
    assert.equal(report.metadata.annotations['io.kubewarden.policy.usage'], '# How to use it\n');
    // The output may replace the input, any number of times.
    const again = await annotate(output, '-m', metadata, '-u', usage, '-o', output);
    assert.equal(again.stdout, written.stdout);
    assert.ok((await readdir(folder)).every((name) => !name.endsWith('.tmp')));
  });

  it('names file and field of a problem, and writes nothing', async () => {
    const rule = 'rules:\n- {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREAT]}\n';
    const output = join(folder, 'never.wasm');
    const result = await annotate(bare, '-m', await file('rule.yml', `${rule}protocol_version: v1\n`), '-o', output);
    assert.equal(result.code, 1);
    assert.match(result.stderr, /rule\.yml: protocol_version is not a key .* did you mean protocolVersion\?/);
    assert.match(result.stderr, /rule\.yml: rules\[0\]\.operations\[0\]: expected one of CREATE, .* got "CREAT"/);
    await assert.rejects(readFile(output), { code: 'ENOENT' });
  });

  it('requires the mode of Rego modules, and refuses a mode that contradicts the module', async () => {
    const rego = `${EXAMPLES}/container-limits/policy.wasm`;
    const output = join(folder, 'rego.wasm');
    const unclear = await annotate(rego, '-m', await file('empty.yml', '{}'), '-o', output);
    assert.equal(unclear.code, 1);
    assert.match(unclear.stderr, /Rego policy.*\nAdd "executionMode: opa" or "executionMode: gatekeeper"/);
    const wrong = await annotate(rego, '-m', await file('wasi.yml', 'executionMode: wasi'), '-o', output);
    assert.match(wrong.stderr, /expected a WASI module/);
  });

  it('reports why it cannot write', async () => {
    const metadata = `${LABELS}/metadata.yml`;
    const missing = await annotate(bare, '-m', metadata, '-o', join(folder, 'no', 'such', 'folder.wasm'));
    assert.match(missing.stderr, /folder\.wasm cannot be written: there is no such file or folder/);
    assert.equal((await annotate(bare, '-m', metadata)).code, 2);
    assert.equal((await annotate(bare, '-m', 'nope.yml', '-o', join(folder, 'x.wasm'))).code, 1);
  });
});

/** A module that exports a function with this name, with another function type, which no function uses. */
function moduleExporting(name: string, ...type: readonly number[]): Uint8Array {
  const section = (id: number, ...content: number[]): number[] => [id, content.length, ...content];
  return Uint8Array.from([
    ...MODULE_START,
    ...section(1, 2, 0x60, 0, 0, ...type),
    ...section(3, 1, 0),
    ...section(5, 1, 0, 1),
    ...section(7, 1, name.length, ...Buffer.from(name), 0, 0),
    ...section(10, 1, 2, 0, 0x0b),
  ]);
}

/** What the commands of authors make of a module, and whether `annotate` wrote one. */
async function answersOf(name: string, module: Uint8Array, metadata: string): Promise<Record<string, CommandResult>> {
  const [file = '', output = '', metadataFile = ''] = ['module.wasm', 'annotated.wasm', 'metadata.yml'].map((kind) =>
    join(folder, `${name}-${kind}`),
  );
  await writeFile(file, module);
  await writeFile(metadataFile, metadata);
  const [inspected, annotated, pushed, evaluated] = await Promise.all([
    portcullis(['inspect', file]),
    portcullis(['annotate', file, '-m', metadataFile, '-o', output]),
    portcullis(['push', file, 'registry://127.0.0.1:1/policies/none:v1', '--force']),
    portcullis(['run', file, '-r', REQUEST]),
  ]);
  return { inspected, annotated, pushed, evaluated };
}

describe('CEL that was compiled to WebAssembly', { concurrency: 2 }, () => {
  const reason = /is CEL compiled to WebAssembly \(execution mode ferricel\).*scaffold vap/;
  const empty = [0x60, 0, 0];
  const metadata = Buffer.from('{"rules":[],"executionMode":"ferricel"}');
  const cases: Record<string, [module: Uint8Array, metadata: string]> = {
    'by its metadata': [
      withCustomSection(moduleExporting('_start', ...empty), METADATA_SECTION, metadata),
      'executionMode: ferricel\nrules: []\n',
    ],
    'by its exports': [moduleExporting('cel_malloc', ...empty), 'rules: []\n'],
  };
  for (const [index, [title, [module, stated]]] of Object.entries(cases).entries()) {
    it(`is refused by name from each command: ${title}`, async () => {
      const results = await answersOf(`ferricel-${index}`, module, stated);
      for (const [name, { code, stderr }] of Object.entries(results)) {
        assert.notEqual(code, 0, name);
        assert.match(stderr, reason, name);
      }
      assert.ok(!(await readdir(folder)).includes(`ferricel-${index}-annotated.wasm`));
    });
  }

  it('is refused as a choice of the user', async () => {
    const { code, stderr } = await portcullis(['run', `${LABELS}/policy.wasm`, '-r', REQUEST, '-e', 'ferricel']);
    assert.notEqual(code, 0);
    assert.match(stderr, reason);
  });
});

describe('a module that the sandbox refuses', { concurrency: 2 }, () => {
  const command = (...type: readonly number[]): Uint8Array => moduleExporting('_start', ...type);
  const many = Array.from({ length: 120 }, () => 0x7f);
  const cases: Record<string, [module: Uint8Array, reason: string | undefined]> = {
    'of garbage collection': [
      command(0x5f, 0),
      'the module uses garbage collection, which the sandbox does not support',
    ],
    'of a proposal that V8 does not have': [
      command(0x60, 1, 0x64, 0x62, 0, 0),
      'the module uses custom descriptors (exact types), which the sandbox does not support',
    ],
    'of the draft that Binaryen 108 writes': [
      command(0x60, 4, 0x7f, 0x6b, 0, 0x7e, 0x7e, 1, 0x7f),
      'not a valid WebAssembly module (WebAssembly.Module(): invalid value type 0x0',
    ],
    'with typed function references': [command(0x60, 4, 0x7f, 0x64, 0, 0x7e, 0x7e, 1, 0x7f), undefined],
    'with more than a hundred parameters': [command(0x60, 120, ...many, 0), undefined],
  };
  for (const [index, [title, [module, reason]]] of Object.entries(cases).entries()) {
    it(`for its types has the same answer from each command: ${title}`, async () => {
      const results = await answersOf(String(index), module, 'executionMode: wasi\nrules: []\n');
      for (const [name, { code, stderr }] of Object.entries(results)) {
        if (reason !== undefined) {
          assert.notEqual(code, 0, name);
          assert.ok(stderr.includes(reason), `${name}: ${stderr}`);
        } else {
          assert.doesNotMatch(stderr, /feature-unsupported|not a valid|does not support|too many/, name);
        }
      }
      const { inspected, annotated } = results;
      assert.equal(annotated?.code, reason === undefined ? 0 : 1, annotated?.stderr);
      assert.equal(inspected?.code, annotated?.code);
      assert.equal((await readdir(folder)).includes(`${index}-annotated.wasm`), reason === undefined);
    });
  }
});

interface BenchFigures {
  readonly evaluations: number;
  readonly latencyMicroseconds: { readonly p50: number; readonly max: number };
}

describe('portcullis bench', { concurrency: 2 }, () => {
  const labels = [`${LABELS}/policy.wasm`, '-r', REQUEST, '--settings-json', '{"labels":["app.kubernetes.io/name"]}'];

  it('prints its measurements and the machine', async () => {
    const { stdout, code } = await portcullis(['bench', ...labels, '-n', '100']);
    assert.equal(code, 0);
    assert.match(stdout, /^required-labels: denied, /);
    assert.match(
      stdout,
      /EVALUATIONS +PER SECOND +P50 +P90 +P99 +MAX +INSTANCE\n100 .* restored after each\n100 .* new for each\n/,
    );
    assert.match(stdout, /Load before: .* processors/);
  });

  it('prints the same as data', async () => {
    const { stdout } = await portcullis(['bench', ...labels, '-n', '50', '-o', 'json']);
    const { freshInstances, isRestored, ...restored } = JSON.parse(stdout) as BenchFigures & {
      isRestored: boolean;
      freshInstances: BenchFigures;
    };
    assert.equal(isRestored, true);
    for (const { evaluations, latencyMicroseconds } of [restored, freshInstances]) {
      assert.equal(evaluations, 50);
      assert.ok(latencyMicroseconds.p50 > 0);
      assert.ok(latencyMicroseconds.max >= latencyMicroseconds.p50);
    }
  });

  it('measures what servers do alone, where no instance is restored', async () => {
    const fresh = [`${GUESTS}/stateful-segments.wasm`, '-r', REQUEST];
    const builtin = ['builtin:pod-security', '-r', REQUEST, '--settings-json', '{"enforce":"baseline"}'];
    for (const policy of [fresh, builtin]) {
      const { stdout, stderr, code } = await portcullis(['bench', ...policy, '-n', '20', '-o', 'json']);
      assert.equal(code, 0, stderr);
      assert.partialDeepStrictEqual(JSON.parse(stdout), { isRestored: false, freshInstances: null });
    }
  });

  it('does not measure failures', async () => {
    const { stdout, stderr, code } = await portcullis(['bench', `${GUESTS}/trap.wasm`, '-r', REQUEST]);
    assert.equal(code, 1);
    assert.equal(stdout, '');
    assert.match(stderr, /no verdict: .*trapped/);
  });
});

describe('portcullis completion', { concurrency: 2 }, () => {
  it('completes commands, flags and values in bash', async () => {
    const script = join(folder, 'completion.bash');
    await writeFile(script, (await portcullis(['completion', 'bash'])).stdout);
    const asked = `source ${script}
      complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _portcullis; echo "\${COMPREPLY[@]}"; }
      complete_words portcullis insp
      complete_words portcullis run --allow-c
      complete_words portcullis run -e gate
      complete_words portcullis inspect LICEN
      complete_words portcullis completion fi
      complete_words portcullis rollout hist
      complete_words portcullis scaffold manifest LICEN
      complete_words portcullis rollout undo --to-`;
    const { stdout } = await run('bash', ['-c', asked]);
    assert.equal(
      stdout,
      'inspect\n--allow-context-aware\ngatekeeper\nLICENSE\nfish\nhistory\nLICENSE\n--to-revision\n',
    );
  });

  it('has scripts for zsh and fish', async () => {
    assert.match((await portcullis(['completion', 'zsh'])).stdout, /^#compdef portcullis\n/);
    assert.match((await portcullis(['completion', 'fish'])).stdout, /-s r -l request-path -r -F/);
    assert.equal((await portcullis(['completion', 'tcsh'])).code, 2);
  });
});
