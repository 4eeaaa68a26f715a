// The start of a policy server whose modules are in the cache while their registry cannot be reached, and with the same modules in
// files: pairs of whole processes. Usage: npm run bench -- warm [ROUNDS]
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ModuleStore } from '../src/modules/index.ts';
import { DEFAULT_SOURCES } from '../src/modules/sources/index.ts';
import { TestAuthority } from '../src/modules/testing/test-authority.ts';
import { TestRegistry } from '../src/modules/testing/test-registry.ts';
import type { ServedPolicyStatus } from '../src/server/index.ts';
import { valueAt } from '../src/values/index.ts';
import { parseYaml } from '../src/values/yaml/index.ts';
import { machine, median, printTable } from './processes.ts';
import { EXAMPLES, Setting } from './setting.ts';

const rounds = Number(process.argv[2] ?? 7);
const POLICIES = 200;
const EXAMPLE_MODULES = ['required-labels', 'default-seccomp', 'namespace-owner', 'pod-privileged', 'image-registries'];
const small = readFileSync(join(EXAMPLES, 'required-labels', 'policy.wasm'));

/** A module of 14 KiB that differs from others by its name. */
function variant(name: string): Buffer {
  const text = Buffer.from(name);
  return Buffer.concat([small, Buffer.from([0, text.length + 2, 1, 0x76]), text]);
}

const SETS: Readonly<Record<string, readonly Buffer[]>> = {
  '5 example modules': EXAMPLE_MODULES.map((name) => readFileSync(join(EXAMPLES, name, 'policy.wasm'))),
  '100 small modules': Array.from({ length: 100 }, (_, index) => variant(`small ${index}`)),
};
/** The settings of an example. */
function settingsOf(name: string): unknown {
  const [manifest] = parseYaml(readFileSync(join(EXAMPLES, name, 'policy.yaml'), 'utf8'));
  return valueAt(manifest, 'spec', 'settings') ?? {};
}

/** The policies file for modules by their references. */
function policiesOf(references: readonly string[], names: readonly string[]): string {
  return Array.from({ length: POLICIES }, (_, index) => {
    const at = index % references.length;
    const settings = JSON.stringify(settingsOf(names[at] ?? ''));
    return `p${index}:\n  module: ${references[at]}\n  settings: ${settings}\n`;
  }).join('');
}

/** Milliseconds until every policy serves, and the processor time of all threads until then. */
interface Start {
  readonly wall: number;
  readonly cpu: number;
}

interface Times {
  readonly first: Start;
  readonly again: Start;
}

async function assertAllServe(operations: string): Promise<void> {
  const view = (await (await fetch(`${operations}/policies`)).json()) as { policies: readonly ServedPolicyStatus[] };
  const idle = view.policies.find(({ serving }) => serving === null);
  if (view.policies.length !== POLICIES || idle !== undefined) {
    throw new Error(`expected ${POLICIES} policies that serve: ${JSON.stringify(idle)}`);
  }
}

/** The start with a cache and no other data, and the start after that. */
async function start(cache: string, policies: string): Promise<Times> {
  const setting = new Setting();
  const once = async (): Promise<Start> => {
    const { upMs, operations, process: server } = await setting.serve(policies);
    const cpu = server.cpuMs();
    await assertAllServe(operations);
    await server.end();
    return { wall: upMs, cpu };
  };
  try {
    const data = join(setting.folder, 'data');
    mkdirSync(data);
    cpSync(cache, join(data, 'modules'), { recursive: true });
    return { first: await once(), again: await once() };
  } finally {
    await setting.close();
  }
}

console.log(`\nwarm: ${POLICIES} policies, two workers, median of ${rounds} pairs; ${machine()}`);
const rows: string[][] = [];
for (const [what, modules] of Object.entries(SETS)) {
  const setting = new Setting();
  try {
    const authority = await TestAuthority.create();
    const registry = await TestRegistry.start(await authority.issue());
    const names = modules.length === EXAMPLE_MODULES.length ? EXAMPLE_MODULES : modules.map(() => 'required-labels');
    const files = modules.map((module, index) => {
      const path = join(setting.folder, `${index}.wasm`);
      writeFileSync(path, module);
      return `file://${path}`;
    });
    const pushed = modules.map((module, index) => {
      const { digest } = registry.push(`bench/${index}`, 'v1', module);
      const tag = `registry://${registry.host}/bench/${index}:v1`;
      return { tag, pinned: `${tag}@${digest}` };
    });
    const kinds = {
      files: files,
      'registry, tags': pushed.map(({ tag }) => tag),
      'registry, digests': pushed.map(({ pinned }) => pinned),
    };
    const cache = join(setting.folder, 'cache');
    const sourceAuthorities = { [registry.host]: [{ type: 'Data' as const, data: authority.pem }] };
    const store = new ModuleStore({ cacheDir: cache, sources: { ...DEFAULT_SOURCES, sourceAuthorities } });
    await Promise.all(
      Object.values(kinds).flatMap((references) => references.map((reference) => store.fetch(reference))),
    );
    await registry[Symbol.asyncDispose]();
    const all = Object.entries(kinds).map(([kind, references]) => ({
      kind,
      policies: policiesOf(references, names),
      times: [] as Times[],
    }));
    for (let round = 0; round < rounds; round += 1) {
      for (const one of all) {
        one.times.push(await start(cache, one.policies));
      }
    }
    const [base] = all;
    for (const { kind, times } of all) {
      const figures = (['first', 'again'] as const).flatMap((which) =>
        (['wall', 'cpu'] as const).flatMap((clock) => [
          median(times.map((time) => time[which][clock])).toFixed(0),
          median(
            times.map((time, round) => time[which][clock] / (base?.times[round]?.[which][clock] ?? Number.NaN)),
          ).toFixed(2),
        ]),
      );
      rows.push([what, kind, ...figures]);
    }
  } finally {
    await setting.close();
    rmSync(setting.folder, { recursive: true, force: true });
  }
}
printTable(['modules', 'from', 'start ms', 'ratio', 'cpu ms', 'ratio', 'restart ms', 'ratio', 'cpu ms', 'ratio'], rows);
