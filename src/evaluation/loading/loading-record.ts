// What a loader thread does at the moment, in a file that survives the end of the process: a module that ends it is found again.
import { closeSync, ftruncateSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { hash } from 'node:crypto';
import { isJsonObject, parseJson } from '../../values/index.ts';

/** A module that is compiled or started, or one that checks settings. */
export interface Suspect {
  /** See {@link suspectKey}. */
  readonly key: string;
  readonly policy: string;
}

const PREFIX = 'loading-';

/**
 * Identifies what may end the process: a module while it is compiled and started, later a module with these settings, so that
 * one policy's settings say nothing about others that use the module.
 */
export function suspectKey(digest: string, settingsJson?: string): string {
  return settingsJson === undefined ? digest : `${digest} ${hash('sha256', settingsJson).slice(0, 16)}`;
}

/** Path of the record of a loader thread. Processes of several machines may share the folder. */
export function recordPath(folder: string, lane: string): string {
  return join(folder, `${PREFIX}${hostname()}-${lane}.json`);
}

/** Writes the record of one thread. Not synced to disk: it outlives the process, not the machine. */
export class LoadingRecord {
  readonly #path: string;
  readonly #startedAt: number;
  #file: number | undefined;
  #isEmpty = true;

  /** @param startedAt when the process started, the same in all of its threads; milliseconds since 1970 */
  constructor(path: string, startedAt: number = performance.timeOrigin) {
    this.#path = path;
    this.#startedAt = startedAt;
  }

  /** @throws the error of the file system; the next call opens the file again */
  begin({ key, policy }: Suspect): void {
    try {
      this.#file ??= openSync(this.#path, 'w', 0o600);
      // A shorter text leaves the end of the one before, on the next line.
      writeSync(this.#file, `${JSON.stringify({ key, policy, pid: process.pid, startedAt: this.#startedAt })}\n`, 0);
      this.#isEmpty = false;
    } catch (error) {
      this.#giveUp();
      throw error;
    }
  }

  /** Nothing is being loaded. */
  end(): void {
    if (this.#file !== undefined && !this.#isEmpty) {
      this.#isEmpty = true;
      ftruncateSync(this.#file, 0);
    }
  }

  #giveUp(): void {
    if (this.#file !== undefined) {
      closeSync(this.#file);
      this.#file = undefined;
    }
  }
}

/** Removes the records of this machine, and returns what was being loaded when their processes ended. */
export function takeSuspects(folder: string): Suspect[] {
  const own = `${PREFIX}${hostname()}-`;
  return namesIn(folder)
    .filter((name) => name.startsWith(own))
    .flatMap((name) => {
      const path = join(folder, name);
      const suspect = readSuspect(path);
      if (suspect !== 'running') {
        rmSync(path, { force: true });
      }
      return suspect === undefined || suspect === 'running' ? [] : [suspect];
    });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Undefined: its process ended between two loads, or while it wrote. */
function readSuspect(path: string): Suspect | 'running' | undefined {
  try {
    const [line = ''] = readFileSync(path, 'utf8').split('\n', 1);
    const content = parseJson(line);
    if (!isJsonObject(content)) {
      return undefined;
    }
    const { key, policy, pid, startedAt } = content;
    if (typeof key !== 'string' || typeof policy !== 'string' || typeof pid !== 'number') {
      return undefined;
    }
    return isRunning(pid, startedAt) ? 'running' : { key, policy };
  } catch {
    return undefined;
  }
}

/** Whether the process still runs. In a container, a process and the one before it have the same id. */
function isRunning(pid: number, startedAt: unknown): boolean {
  if (pid === process.pid) {
    return startedAt === performance.timeOrigin;
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
