import { spawnSync } from 'node:child_process';
import type { SpawnSyncReturns } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { BinaryReader } from './binary-reader.ts';
import { BinaryWriter } from './binary-writer.ts';
import { WasmError } from './errors.ts';
import { Op } from './opcodes.ts';

/**
 * Memory that a compilation may take: an eighth of the chart's limit for a policy server, because several workers may compile
 * at once. Our Rust example takes 65 MiB. Bytes.
 */
const MAX_COMPILER_BYTES = 128 * 1024 * 1024;

/** Share of the memory that the system has left, because the process compiles the module again. */
const MEMORY_SHARE = 0.5;

/** Processor time of a trial: the function of 120 KB in our Rust example takes some 0.5 s. Milliseconds. */
const MAX_PROCESSOR_MS = 4_000;

/** Ends a trial that neither works nor ends: less than the loader gives a compilation. Milliseconds. */
const TRIAL_TIMEOUT_MS = 15_000;

/** The limit that the process exceeded, which it writes before it ends itself. */
export const Exceeded = { memory: 'memory', time: 'time' } as const;

const MIB = 1024 * 1024;
const CODE_SECTION = 10;
const HEADER_BYTES = 8;
/** No locals, then a trap. */
const STUB = Uint8Array.of(0, Op.unreachable, Op.end);

/** Functions that may be too costly to compile, by index among those that the module defines. */
export interface Doubts {
  readonly functions: ReadonlySet<number>;
  /** The first of them, for a message. */
  readonly shown: string;
}

/** Limits of a trial, as arguments of the process. */
export interface TrialLimits {
  readonly memoryBytes: number;
  readonly processorMs: number;
}

/**
 * Compiles the doubtful functions of a module with V8's optimizing compiler in a process of its own. V8 has no limit for the
 * memory and time of a compilation, and compiles functions late, in the threads that evaluate reviews.
 * @throws WasmError `module-too-costly`; `trial-failed`, which another attempt may not
 */
export function tryCompilation(module: Uint8Array, { functions, shown }: Doubts, limits = usualLimits()): void {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const script = fileURLToPath(new URL(`./trial-process.${extension}`, import.meta.url));
  const trial = spawnSync(process.execPath, [script, String(limits.memoryBytes), String(limits.processorMs)], {
    input: onlyFunctions(module, functions),
    env: {},
    timeout: TRIAL_TIMEOUT_MS,
    killSignal: 'SIGKILL',
    stdio: ['pipe', 'pipe', 'ignore'],
    windowsHide: true,
  });
  if (trial.status !== 0) {
    throw failureOf(trial, shown, limits);
  }
}

function usualLimits(): TrialLimits {
  const memoryBytes = Math.floor(Math.min(MAX_COMPILER_BYTES, process.availableMemory() * MEMORY_SHARE));
  return { memoryBytes, processorMs: MAX_PROCESSOR_MS };
}

function failureOf(trial: SpawnSyncReturns<Buffer>, shown: string, limits: TrialLimits): WasmError {
  const { memoryBytes, processorMs } = limits;
  switch (trial.stdout?.toString()) {
    case Exceeded.memory:
      return tooCostly(shown, `${Math.floor(memoryBytes / MIB)} MiB`);
    case Exceeded.time:
      return tooCostly(shown, `${processorMs} ms`);
    default: {
      const how = trial.error?.message ?? trial.signal ?? `exit code ${trial.status}`;
      return new WasmError(
        'trial-failed',
        `${shown}; a trial compilation in another process did not end (${how}): expected memory and processor time for it`,
      );
    }
  }
}

function tooCostly(shown: string, limit: string): WasmError {
  return new WasmError('module-too-costly', `${shown}; a trial compilation took more than ${limit}`);
}

/** The module with a trap in place of all other functions. */
function onlyFunctions(module: Uint8Array, functions: ReadonlySet<number>): Uint8Array {
  const reader = new BinaryReader(module, HEADER_BYTES);
  const out = new BinaryWriter().range(module, 0, HEADER_BYTES);
  while (!reader.isAtEnd) {
    const id = reader.u8();
    const content = reader.slice(reader.u32());
    out.op(id);
    if (id === CODE_SECTION) {
      const size = out.reserveSize();
      writeBodies(out, new BinaryReader(content), functions);
      out.setSize(size);
    } else {
      out.sized(content);
    }
  }
  return out.written;
}

function writeBodies(out: BinaryWriter, code: BinaryReader, functions: ReadonlySet<number>): void {
  const count = code.u32();
  out.u32(count);
  for (let index = 0; index < count; index++) {
    const body = code.slice(code.u32());
    out.sized(functions.has(index) ? body : STUB);
  }
}
