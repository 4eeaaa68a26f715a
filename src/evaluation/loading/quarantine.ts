// Modules during whose loading the process ended. They are loaded again later, so that everything else serves first.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorText, isJsonObject, parseJson } from '../../values/index.ts';
import { type Suspect, takeSuspects } from './loading-record.ts';

/** How long a module waits after the process ended the first time: all others serve by then. Milliseconds. */
export const QUARANTINE_MS = 30_000;
/** Growth of the wait with each further end. */
const BACKOFF = 4;
/** Longest wait: the process that loads the module then ends at most once an hour. Milliseconds. */
const MAX_QUARANTINE_MS = 3_600_000;
/** How long a module is remembered after its wait. Milliseconds. */
const MEMORY_MS = 24 * 3_600_000;
/** Most modules that are remembered: two threads load, so an end has at most two suspects. */
const MAX_QUARANTINED = 200;
const FILE_NAME = 'quarantine.json';

/** A module that waits. */
export interface Quarantined extends Suspect {
  /** How often the process ended while this was loaded. */
  readonly ends: number;
  /** When it may be loaded again. Milliseconds since 1970. */
  readonly until: number;
}

/** What may not be loaded at the moment, in a file of a folder that survives restarts. */
export class Quarantine {
  readonly #path: string;
  readonly #failed: (error: string) => void;
  readonly #all: Map<string, Quarantined>;

  /**
   * Adds what was being loaded when the previous process ended.
   * @param failed called when the file cannot be written
   */
  constructor(folder: string, failed: (error: string) => void, now: number = Date.now()) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#path = join(folder, FILE_NAME);
    this.#failed = failed;
    const known = readQuarantined(this.#path).filter(({ until }) => until + MEMORY_MS > now);
    this.#all = new Map(known.slice(-MAX_QUARANTINED).map((one) => [one.key, one]));
    const suspects = takeSuspects(folder);
    for (const { key, policy } of suspects) {
      const ends = (this.#all.get(key)?.ends ?? 0) + 1;
      const wait = Math.min(MAX_QUARANTINE_MS, QUARANTINE_MS * BACKOFF ** (ends - 1));
      this.#all.set(key, { key, policy, ends, until: now + wait });
    }
    if (suspects.length > 0) {
      this.#write();
    }
  }

  list(): readonly Quarantined[] {
    return [...this.#all.values()];
  }

  /** Called when a policy was loaded with modules of these digests: they do not end the process. */
  loaded(policy: string, digests: readonly string[]): void {
    if (this.#all.size === 0) {
      return;
    }
    const cleared = this.list().filter((one) => one.policy === policy || digests.includes(one.key));
    for (const { key } of cleared) {
      this.#all.delete(key);
    }
    if (cleared.length > 0) {
      this.#write();
    }
  }

  /** At once: the process may end soon. */
  #write(): void {
    try {
      const temporary = `${this.#path}.new`;
      writeFileSync(temporary, JSON.stringify({ quarantined: this.list() }), { mode: 0o600 });
      renameSync(temporary, this.#path);
    } catch (error) {
      this.#failed(errorText(error));
    }
  }
}

function readQuarantined(path: string): Quarantined[] {
  try {
    const content = parseJson(readFileSync(path, 'utf8'));
    const all = isJsonObject(content) ? content['quarantined'] : undefined;
    return Array.isArray(all) ? (all as readonly unknown[]).filter(isQuarantined) : [];
  } catch {
    // Without the file, a module is tried again at once.
    return [];
  }
}

function isQuarantined(value: unknown): value is Quarantined {
  const { key, policy, ends, until } = (value ?? {}) as Partial<Quarantined>;
  return typeof key === 'string' && typeof policy === 'string' && typeof ends === 'number' && typeof until === 'number';
}
