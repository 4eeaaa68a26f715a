// GET /modules/{digest}: modules of the replica's cache, for replicas that cannot reach their source or need not.
import type { ServerResponse } from 'node:http';
import { RequestRefused } from '../https/index.ts';

/** Modules in memory at once, on their way to peers: 4 times the largest module, 256 MiB at the very worst. */
export const MAX_MODULES_IN_MEMORY = 4;
/** A peer that has not taken a module by then is cut off: it has given up before. Milliseconds. */
export const SEND_TIMEOUT_MS = 30_000;

interface Held {
  readonly bytes: Promise<Uint8Array | undefined>;
  users: number;
}

/** Reads modules for peers: once for all that ask for the same at the same time. */
export class ControlModules {
  readonly #read: (digest: string) => Promise<Uint8Array | undefined>;
  readonly #held = new Map<string, Held>();

  /** @param read the module of a digest, verified; undefined when there is none */
  constructor(read: (digest: string) => Promise<Uint8Array | undefined>) {
    this.#read = read;
  }

  /**
   * Answers with the module.
   * @throws RequestRefused 404, 503
   */
  async send(digest: string, response: ServerResponse): Promise<void> {
    const held = this.#hold(digest);
    try {
      const bytes = await held.bytes;
      if (bytes === undefined) {
        throw new RequestRefused(404, 'the module is not in the cache of this replica');
      }
      await write(response, bytes);
    } finally {
      held.users -= 1;
      if (held.users === 0) {
        this.#held.delete(digest);
      }
    }
  }

  #hold(digest: string): Held {
    let held = this.#held.get(digest);
    if (held === undefined) {
      if (this.#held.size >= MAX_MODULES_IN_MEMORY) {
        throw new RequestRefused(503, 'more modules are on their way than are held at once; try again');
      }
      held = { bytes: this.#read(digest), users: 0 };
      this.#held.set(digest, held);
    }
    held.users += 1;
    return held;
  }
}

/** Resolves when all was taken, or the connection ended. */
function write(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => response.destroy(), SEND_TIMEOUT_MS);
    limit.unref();
    response.once('close', () => {
      clearTimeout(limit);
      resolve();
    });
    if (response.destroyed) {
      clearTimeout(limit);
      resolve();
      return;
    }
    response.writeHead(200, { 'content-type': 'application/wasm', 'content-length': bytes.byteLength });
    response.end(bytes);
  });
}
