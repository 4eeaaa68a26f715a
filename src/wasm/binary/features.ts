import { WasmError } from './errors.ts';

const EXPECTED =
  'expected WebAssembly 2.0 with tail calls, extended constants, relaxed SIMD and typed function references; compile the policy ' +
  'without that feature';

/** Features of WebAssembly that the sandbox refuses. */
export const Feature = {
  exceptions: 'exception handling',
  garbageCollection: 'garbage collection',
  memory64: '64-bit memory',
  table64: '64-bit tables',
  multiMemory: 'several memories',
  threads: 'threads (atomics, shared memory)',
} as const;

/** Proposals that V8 does not have, so that modules with them are not valid. */
export const Proposal = {
  compactImports: 'compact imports',
  customDescriptors: 'custom descriptors (exact types)',
  customPageSizes: 'memory with a page size of its own',
  halfPrecision: 'half-precision floats (fp16)',
  sharedEverything: 'shared types (threads)',
  stackSwitching: 'stack switching',
  strings: 'strings (stringref)',
  wideArithmetic: 'wide arithmetic',
} as const;

const PROPOSALS: readonly string[] = Object.values(Proposal);

/** A module uses a feature that the sandbox does not support. */
export class UnsupportedFeature extends WasmError {
  /** Whether V8 does not have it either. */
  readonly isProposal: boolean;

  constructor(feature: string) {
    super('feature-unsupported', `the module uses ${feature}, which the sandbox does not support: ${EXPECTED}`);
    this.isProposal = PROPOSALS.includes(feature);
  }
}

/** The error for a module that uses this feature. */
export function unsupported(feature: string): UnsupportedFeature {
  return new UnsupportedFeature(feature);
}
