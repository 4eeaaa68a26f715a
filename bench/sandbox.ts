// The cost of isolation between calls: microseconds per call for each kind of module and each method, and the overhead of fuel
// and write tracking. Prints the table of docs/adr/0002-webassembly-sandbox.md.
//   node bench/sandbox.ts [calls per figure]
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { valueAt } from '../src/values/index.ts';
import { parseYaml } from '../src/values/yaml/index.ts';
import { compileModule } from '../src/wasm/instrumentation/compile.ts';
import type { CompiledModule, SandboxOptions } from '../src/wasm/instrumentation/compile.ts';
import type { CallContext } from '../src/wasm/guests/call.ts';
import { OpaGuest, opaBuiltins } from '../src/wasm/guests/opa.ts';
import { PrivateExport } from '../src/wasm/instrumentation/rewrite.ts';
import { WapcGuest } from '../src/wasm/guests/wapc.ts';
import { WasiCommand } from '../src/wasm/guests/wasi-command.ts';

const CALLS = Number(process.argv[2] ?? 5000);
const MEMORY_LIMIT = 256 * 1024 * 1024;
const EXAMPLES = join(import.meta.dirname, '../examples');

const context: CallContext = {
  limits: { fuel: 2_000_000_000, answerBytes: 1 << 20 },
  hostCall: () => new Uint8Array(0),
  log: () => undefined,
};

/** A pod with five containers: 5 KB of JSON. */
function review(): string {
  const containers = Array.from({ length: 5 }, (_, index) => ({
    name: `service-${index}`,
    image: `registry.example.com/team/service-${index}:1.${index}.0`,
    command: ['/usr/bin/service', '--port', `${8080 + index}`, '--config', `/etc/service-${index}/config.yaml`],
    env: Array.from({ length: 6 }, (_, n) => ({ name: `VARIABLE_${n}`, value: `value-of-${n}-for-service-${index}` })),
    ports: [{ name: 'http', containerPort: 8080 + index, protocol: 'TCP' }],
    resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { cpu: '500m', memory: '256Mi' } },
    securityContext: { privileged: false, allowPrivilegeEscalation: false, runAsNonRoot: true },
    volumeMounts: [{ name: `config-${index}`, mountPath: `/etc/service-${index}`, readOnly: true }],
  }));
  return JSON.stringify({
    uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    name: 'shop',
    namespace: 'shop',
    operation: 'CREATE',
    userInfo: { username: 'alice', groups: ['system:authenticated'] },
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'shop', namespace: 'shop', labels: { owner: 'alice', app: 'shop' } },
      spec: { containers, volumes: containers.map((_, n) => ({ name: `config-${n}`, configMap: { name: `c-${n}` } })) },
    },
    dryRun: false,
  });
}

function question(example: string): string {
  const [manifest] = parseYaml(readFileSync(join(EXAMPLES, example, 'policy.yaml'), 'utf8'));
  return `{"request":${review()},"settings":${JSON.stringify(valueAt(manifest, 'spec', 'settings') ?? {})}}`;
}

function moduleOf(example: string): Uint8Array {
  return readFileSync(join(EXAMPLES, example, 'policy.wasm'));
}

function compiled(example: string, isolation: SandboxOptions['isolation']): CompiledModule {
  return compileModule(moduleOf(example), { memoryLimitBytes: MEMORY_LIMIT, isolation });
}

interface Figures {
  readonly median: number;
  readonly p99: number;
  readonly mean: number;
}

function measure(call: () => void, calls: number): Figures {
  for (let index = 0; index < calls / 2; index++) {
    call();
  }
  const times = new Float64Array(calls);
  const began = performance.now();
  for (let index = 0; index < calls; index++) {
    const from = performance.now();
    call();
    times[index] = (performance.now() - from) * 1000;
  }
  const mean = ((performance.now() - began) * 1000) / calls;
  times.sort();
  return { median: times[Math.floor(calls / 2)] ?? 0, p99: times[Math.floor(calls * 0.99)] ?? 0, mean };
}

/**
 * A waPC guest without isolation, which uses one instance for all calls: the cost of the guest's own code.
 * @param copyBack restores all memory after each call
 */
function reused(module: WebAssembly.Module, payload: string, copyBack = false): () => void {
  // Some guests never free memory.
  const callsPerInstance = 500;
  let call = reusedInstance(module, payload, copyBack);
  let left = callsPerInstance;
  return () => {
    if (left-- === 0) {
      call = reusedInstance(module, payload, copyBack);
      left = callsPerInstance;
    }
    call();
  };
}

function reusedInstance(module: WebAssembly.Module, payload: string, copyBack: boolean): () => void {
  const bytes = new TextEncoder().encode(payload);
  const operation = new TextEncoder().encode('validate');
  let u8 = new Uint8Array(0);
  const refresh = (): Uint8Array => {
    if (u8.length === 0) {
      u8 = new Uint8Array(memory.buffer);
    }
    return u8;
  };
  const nothing = (): number => 0;
  const wapc: Record<string, unknown> = {
    __guest_request: (operationPtr: number, payloadPtr: number) => {
      refresh().set(operation, operationPtr >>> 0);
      refresh().set(bytes, payloadPtr >>> 0);
    },
    __guest_response: (ptr: number, length: number) => void refresh().slice(ptr >>> 0, (ptr >>> 0) + length),
  };
  const imports: WebAssembly.Imports = {};
  for (const wanted of WebAssembly.Module.imports(module)) {
    imports[wanted.module] ??= {};
    (imports[wanted.module] as Record<string, unknown>)[wanted.name] = wapc[wanted.name] ?? nothing;
  }
  const exports = new WebAssembly.Instance(module, imports).exports;
  const memory = (exports['memory'] ?? exports[PrivateExport.memory]) as WebAssembly.Memory;
  const fuel = exports[PrivateExport.fuel] as WebAssembly.Global | undefined;
  for (const name of [PrivateExport.start, '_initialize', 'wapc_init']) {
    (exports[name] as (() => void) | undefined)?.();
  }
  const guestCall = exports['__guest_call'] as (operation: number, payload: number) => number;
  const snapshot = copyBack ? refresh().slice() : undefined;
  return () => {
    if (fuel !== undefined) {
      fuel.value = 1_000_000_000_000n;
    }
    if (guestCall(operation.length, bytes.length) !== 1) {
      throw new Error('the guest failed');
    }
    if (snapshot !== undefined) {
      // A lower bound: grown memory and globals are not restored.
      refresh().set(snapshot);
      refresh().fill(0, snapshot.length);
    }
  };
}

function wapcVariants(example: string): [string, () => () => void][] {
  const payload = question(example);
  const viaGuest = (isolation: SandboxOptions['isolation']) => (): (() => void) => {
    const guest = new WapcGuest(compiled(example, isolation));
    return () => void guest.call('validate', payload, context);
  };
  return [
    ['no isolation, no metering', () => reused(new WebAssembly.Module(moduleOf(example)), payload)],
    ['no isolation, fuel', () => reused(compiled(example, 'fresh').module, payload)],
    ['no isolation, fuel + tracking', () => reused(compiled(example, 'restore').module, payload)],
    ['copy back all memory', () => reused(compiled(example, 'fresh').module, payload, true)],
    ['tracked restore (WapcGuest)', viaGuest('restore')],
    ['fresh instance (WapcGuest)', viaGuest('fresh')],
  ];
}

function commandVariants(example: string): [string, () => () => void][] {
  const payload = question(example);
  const via = (isolation: SandboxOptions['isolation']) => (): (() => void) => {
    const command = new WasiCommand(compiled(example, isolation));
    return () => void command.run(['policy.wasm', 'validate'], payload, context);
  };
  return [
    ['tracked restore (WasiCommand)', via('restore')],
    ['fresh instance (WasiCommand)', via('fresh')],
  ];
}

function opaVariants(example: string): [string, () => () => void][] {
  const input = `{"parameters":{},"review":${review()}}`;
  const via = (isolation: SandboxOptions['isolation']) => (): (() => void) => {
    const guest = new OpaGuest(compiled(example, isolation), opaBuiltins);
    return () => void guest.evaluate(0, input, '{}', context);
  };
  return [
    ['tracked restore (OpaGuest)', via('restore')],
    ['fresh instance (OpaGuest)', via('fresh')],
  ];
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Resident memory after a garbage collection. */
function residentBytes(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().rss;
}

/** Prints the processor time of the first call of a guest, which makes its instance, and its memory after some calls. */
function printInstances(title: string, make: () => () => void): void {
  const count = 50;
  const kept: (() => void)[] = [];
  let spent = 0;
  const warm = make();
  warm();
  const before = residentBytes();
  for (let index = 0; index < count; index++) {
    const call = make();
    const cpuBefore = process.threadCpuUsage();
    call();
    const { user, system } = process.threadCpuUsage(cpuBefore);
    spent += user + system;
    call();
    kept.push(call);
  }
  const bytes = (residentBytes() - before) / kept.length;
  console.log(
    `  ${title.padEnd(34)} ${(spent / count).toFixed(0).padStart(9)} µs ${(bytes / 1024).toFixed(0).padStart(9)} KiB`,
  );
}

function printKind(title: string, example: string, variants: [string, () => () => void][], calls: number): void {
  console.log(`\n${title}: ${example}, ${moduleOf(example).length} bytes, request ${question(example).length} bytes`);
  for (const [name, make] of variants) {
    const { median, p99, mean } = measure(make(), calls);
    const cells = [median, p99, mean].map((value) => value.toFixed(1).padStart(9)).join(' ');
    console.log(`  ${name.padEnd(34)} ${cells}`);
  }
}

console.log(`Node ${process.version}, load average ${loadavg()[0]?.toFixed(1)}; µs per call: median, p99, mean`);
printKind('waPC, AssemblyScript', 'required-labels', wapcVariants('required-labels'), CALLS);
printKind('waPC, Rust', 'pod-privileged', wapcVariants('pod-privileged'), CALLS);
printKind('OPA, Gatekeeper mode', 'container-limits', opaVariants('container-limits'), CALLS);
printKind('WASI command, Go', 'image-registries', commandVariants('image-registries'), Math.ceil(CALLS / 20));

console.log('\nProcessor time of the first call of a new guest, and the memory that it keeps after two calls');
for (const isolation of ['restore', 'fresh'] as const) {
  const rust = compiled('pod-privileged', isolation);
  const payload = question('pod-privileged');
  printInstances(`waPC, Rust, ${isolation}`, () => {
    const guest = new WapcGuest(rust);
    return () => void guest.call('validate', payload, context);
  });
  const opa = compiled('container-limits', isolation);
  printInstances(`OPA, ${isolation}`, () => {
    const guest = new OpaGuest(opa, opaBuiltins);
    return () => void guest.evaluate(0, `{"parameters":{},"review":${review()}}`, '{}', context);
  });
  const go = compiled('image-registries', isolation);
  const input = question('image-registries');
  printInstances(`WASI command, Go, ${isolation}`, () => {
    const command = new WasiCommand(go);
    return () => void command.run(['policy.wasm', 'validate'], input, context);
  });
}
