import { spawnSync } from 'node:child_process';
import type { SpawnSyncReturns } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { BinaryReader } from '../binary/binary-reader.ts';
import { BinaryWriter } from '../binary/binary-writer.ts';
import { WasmError } from '../binary/errors.ts';
import { SECTION_ORDER, SectionId } from '../binary/section-id.ts';

/**
 * Memory that a compilation may take: a quarter of the chart's limit for a policy server. Two functions of a Rust policy take
 * 160 MiB after wasm-opt, and one of 356 KB in Go 192. With a third of the limit, hostile modules ended the process. Bytes.
 */
const MAX_COMPILER_BYTES = 256 * 1024 * 1024;

/** Share of the memory that the system has left, because the process compiles the module again. */
const MEMORY_SHARE = 0.5;

/** Processor time of a trial: the function of 120 KB in our Rust example takes some 0.5 s. Milliseconds. */
const MAX_PROCESSOR_MS = 4_000;

/** Ends a trial that gets a thirtieth of a processor: it neither works nor ends. Milliseconds. */
const TRIAL_TIMEOUT_MS = 30 * MAX_PROCESSOR_MS;

/** The limit that the process exceeded, which it writes before it ends itself. */
export const Exceeded = { memory: 'memory', time: 'time' } as const;

const MIB = 1024 * 1024;
const HEADER_BYTES = 8;
/** A section without entries. */
const NO_ENTRIES = Uint8Array.of(0);

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

/**
 * A module of these functions alone, so that only they are measured. Code names functions by index: all functions of the module
 * become imports, and the doubtful ones follow. Segments of data are empty.
 */
function onlyFunctions(module: Uint8Array, doubtful: ReadonlySet<number>): Uint8Array {
  const sections = sectionsOf(module);
  const types = numbersOf(sections.get(SectionId.function));
  const kept = [...doubtful].toSorted((one, other) => one - other);
  sections.set(SectionId.import, withFunctions(sections.get(SectionId.import), types));
  sections.set(
    SectionId.function,
    vector(kept, (out, index) => out.u32(types[index] ?? 0)),
  );
  sections.set(SectionId.code, bodiesOf(sections.get(SectionId.code), kept));
  const data = sections.get(SectionId.data);
  if (data !== undefined) {
    const count = new BinaryReader(data).u32();
    sections.set(SectionId.data, vector(Array.from({ length: count }), emptySegment));
  }
  const out = new BinaryWriter().range(module, 0, HEADER_BYTES);
  for (const id of SECTION_ORDER) {
    const content = sections.get(id);
    if (content !== undefined) {
      out.op(id).sized(content);
    }
  }
  return out.written;
}

function sectionsOf(module: Uint8Array): Map<number, Uint8Array> {
  const reader = new BinaryReader(module, HEADER_BYTES);
  const sections = new Map<number, Uint8Array>();
  while (!reader.isAtEnd) {
    sections.set(reader.u8(), reader.slice(reader.u32()));
  }
  return sections;
}

function vector<T>(entries: readonly T[], write: (out: BinaryWriter, entry: T) => void): Uint8Array {
  const out = new BinaryWriter().u32(entries.length);
  for (const entry of entries) {
    write(out, entry);
  }
  return out.written;
}

function numbersOf(section: Uint8Array = NO_ENTRIES): number[] {
  const reader = new BinaryReader(section);
  return Array.from({ length: reader.u32() }, () => reader.u32());
}

/** The import section, then functions of these types. */
function withFunctions(section: Uint8Array = NO_ENTRIES, types: readonly number[]): Uint8Array {
  const reader = new BinaryReader(section);
  const out = new BinaryWriter().u32(reader.u32() + types.length).range(section, reader.pos, section.length);
  for (const type of types) {
    out.name('').name('').op(0).u32(type);
  }
  return out.written;
}

function bodiesOf(section: Uint8Array = NO_ENTRIES, kept: readonly number[]): Uint8Array {
  const reader = new BinaryReader(section);
  const bodies = Array.from({ length: reader.u32() }, () => reader.slice(reader.u32()));
  return vector(kept, (out, index) => out.sized(bodies[index] ?? new Uint8Array(0)));
}

function emptySegment(out: BinaryWriter): void {
  const passive = 1;
  out.op(passive, 0);
}
