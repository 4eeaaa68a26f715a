// What a controller reports about its copies of modules, as JSON.
import { isJsonObject } from '../resources/index.ts';
import { parseJson } from '../values/index.ts';

/** The copies of modules that a controller has on its disk. */
export interface CopiesReport {
  /** Differs between processes, and after each change. */
  readonly version: string;
  /** Digests by PolicyServer. */
  readonly copies: Readonly<Record<string, readonly string[]>>;
  /** Digests without room, by PolicyServer. */
  readonly refused: Readonly<Record<string, readonly string[]>>;
}

/** Largest report: 16,000 digests, twice what fits in the folder of a controller. Bytes. */
export const MAX_COPIES_BYTES = 2 * 1024 * 1024;
/** How long a controller waits for a change before it answers that there is none. Milliseconds. */
export const COPIES_WAIT_MS = 5_000;

/** @throws TypeError for anything else than a report */
export function parseCopiesReport(text: string): CopiesReport {
  const value = parseJson(text);
  if (!isJsonObject(value) || typeof value['version'] !== 'string') {
    throw new TypeError('expected a report of copies with a version');
  }
  return { version: value['version'], copies: digestsOf(value['copies']), refused: digestsOf(value['refused']) };
}

function digestsOf(value: unknown): Record<string, readonly string[]> {
  if (!isJsonObject(value)) {
    throw new TypeError('expected digests by PolicyServer');
  }
  const lists = Object.entries(value).map(([policyServer, digests]) => {
    if (!Array.isArray(digests) || !digests.every((digest) => typeof digest === 'string')) {
      throw new TypeError('expected a list of digests');
    }
    return [policyServer, digests] as const;
  });
  return Object.fromEntries(lists);
}
