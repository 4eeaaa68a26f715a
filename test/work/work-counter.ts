// Counts the work of a call, the same in each run: how often each block of our code and of packages ran, and what functions of the
// language compared and made.
import { Session } from 'node:inspector';
import type { Profiler } from 'node:inspector';
import { countNatives, nativeWork } from './counted-natives.ts';

/** Code whose blocks count. */
const COUNTED = /\/(?:src|node_modules)\//;

export class WorkCounter {
  readonly #session = new Session();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    countNatives();
  }

  /** Operations of a call, of about a nanosecond each. */
  operationsOf(call: () => unknown): number {
    this.#blocks();
    const before = nativeWork();
    call();
    return this.#blocks() + nativeWork() - before;
  }

  /** Blocks that ran since the last time. */
  #blocks(): number {
    let blocks = 0;
    this.#session.post('Profiler.takePreciseCoverage', (_, { result }) => {
      blocks = result.filter(({ url }) => COUNTED.test(url)).reduce((sum, script) => sum + blocksOf(script), 0);
    });
    return blocks;
  }
}

function blocksOf({ functions }: Profiler.ScriptCoverage): number {
  return functions.flatMap(({ ranges }) => ranges).reduce((sum, { count }) => sum + count, 0);
}
