// Measures processor time in units of a reference loop, so that a slow or busy machine measures the same.

/** Characters that the reference loop reads. A machine of the project takes a nanosecond for each. */
const REFERENCE_TEXT = 'The quick brown fox jumps over the lazy dog. '.repeat(100_000);
const REFERENCE_RUNS = 5;

/** Processor time of this thread. Nanoseconds. */
function cpuNs(): number {
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) * 1000;
}

function timeOf(call: () => unknown): number {
  const before = cpuNs();
  call();
  return cpuNs() - before;
}

let sum = 0;

/** Hashes the text, so that no compiler leaves the loop out. */
function readReference(): void {
  for (let at = 0; at < REFERENCE_TEXT.length; at += 1) {
    sum = (Math.imul(sum, 31) + REFERENCE_TEXT.charCodeAt(at)) | 0;
  }
}

export class Stopwatch {
  /** How long this machine takes for a character of the reference loop. Nanoseconds. */
  readonly #nsPerCharacter: number;

  constructor() {
    const times = Array.from({ length: REFERENCE_RUNS }, () => timeOf(readReference));
    this.#nsPerCharacter = Math.min(...times) / REFERENCE_TEXT.length;
  }

  /** Processor time of a call, in nanoseconds of the reference machine. */
  nanosecondsOf(call: () => unknown): number {
    return timeOf(call) / this.#nsPerCharacter;
  }
}
