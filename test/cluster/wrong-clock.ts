// Processes whose clocks are wrong by a fixed time: libfaketime, loaded before the program.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findFaketime } from './binaries.ts';

/** Where the library keeps what the threads of a process share: files that have the id of the process in their names. */
const SHARED_FOLDER = '/dev/shm';
const SHARED_FILE = /^(?:sem\.faketime_sem|faketime_shm)_(\d+)$/;

/** What a clock differs by from that of this machine: 60 is a minute ahead, -60 a minute behind. */
export type ClockOffsetSeconds = number;

/**
 * A command with another time of day, its threads and the processes that it starts included. Only what says what time it is
 * differs: clocks that measure how long something takes, and timers, go on as they are, and files have their true times.
 * @throws Error when the library is not there: it says how to get it
 */
export function withClock(command: readonly string[], offset: ClockOffsetSeconds): readonly string[] {
  const library = findFaketime();
  if (library === undefined) {
    throw new Error('libfaketime is not there; get it with "npm run cluster:build"');
  }
  const environment = {
    LD_PRELOAD: library,
    FAKETIME: `${offset < 0 ? '' : '+'}${offset}s`,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
  };
  return ['env', ...Object.entries(environment).map(([name, value]) => `${name}=${value}`), ...command];
}

/** Removes what the library has left of processes that were killed. */
export function removeClocks(): void {
  for (const file of existsSync(SHARED_FOLDER) ? readdirSync(SHARED_FOLDER) : []) {
    const [, pid] = SHARED_FILE.exec(file) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) {
      rmSync(join(SHARED_FOLDER, file), { force: true });
    }
  }
}
