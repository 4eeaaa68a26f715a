// Runs processes with a clock that is wrong by a fixed offset, by libfaketime.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findFaketime } from './binaries.ts';

/** The folder for the shared memory of the library. Its files have the id of the process in their name. */
const SHARED_FOLDER = '/dev/shm';
const SHARED_FILE = /^(?:sem\.faketime_sem|faketime_shm)_(\d+)$/;

/** The offset of a clock from that of this machine: 60 is a minute ahead, -60 a minute behind. */
export type ClockOffsetSeconds = number;

/**
 * Changes the clock of a command, of its threads, and of the processes that it starts. Only the time of day changes. Monotonic
 * clocks, timers, and times of files do not.
 * @throws Error that says how to get the library, when it is missing
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

/** Removes the files of the library for processes that were killed. */
export function removeClocks(): void {
  for (const file of existsSync(SHARED_FOLDER) ? readdirSync(SHARED_FOLDER) : []) {
    const [, pid] = SHARED_FILE.exec(file) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) {
      rmSync(join(SHARED_FOLDER, file), { force: true });
    }
  }
}
