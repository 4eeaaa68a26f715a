// GET /modules/{digest}: modules from the replica's cache, for other replicas.
import type { ServerResponse } from 'node:http';
import { RequestRefusal } from '../https/index.ts';

/** Modules in memory for peers: 256 MiB, if all have the largest size. */
export const MAX_MODULES_IN_MEMORY = 4;
/** Time limit of sending a module; peers give up earlier. Milliseconds. */
const SEND_TIMEOUT_MS = 30_000;

interface ModuleRead {
  readonly bytes: Promise<Uint8Array | undefined>;
  users: number;
}

/** Reads modules for peers; parallel requests for a module share one read. */
export class ControlModules {
  readonly #readModule: (digest: string) => Promise<Uint8Array | undefined>;
  readonly #reads = new Map<string, ModuleRead>();

  /** @param read the verified module of a digest; undefined if there is none */
  constructor(read: (digest: string) => Promise<Uint8Array | undefined>) {
    this.#readModule = read;
  }

  /**
   * Sends the module.
   * @throws RequestRefusal 404, 503
   */
  async send(digest: string, response: ServerResponse): Promise<void> {
    const shared = this.#acquire(digest);
    try {
      const bytes = await shared.bytes;
      if (bytes === undefined) {
        throw new RequestRefusal(404, 'the module is not in the cache of this replica');
      }
      await write(response, bytes);
    } finally {
      shared.users -= 1;
      if (shared.users === 0) {
        this.#reads.delete(digest);
      }
    }
  }

  #acquire(digest: string): ModuleRead {
    let shared = this.#reads.get(digest);
    if (shared === undefined) {
      if (this.#reads.size >= MAX_MODULES_IN_MEMORY) {
        throw new RequestRefusal(503, 'too many modules are being sent; try again');
      }
      shared = { bytes: this.#readModule(digest), users: 0 };
      this.#reads.set(digest, shared);
    }
    shared.users += 1;
    return shared;
  }
}

/** Resolves when all bytes are sent or the connection has closed. */
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
