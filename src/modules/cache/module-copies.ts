import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { dnsSubdomainProblems } from '../../names/index.ts';
import { TEMPORARY_PREFIX } from './cache-eviction.ts';
import { type Digest, isDigest } from '../reference/digest.ts';

/** What is read from a file at a time. Bytes. */
const CHUNK_BYTES = 1024 * 1024;
const SUFFIX = '.wasm';

/** A module that belongs to a PolicyServer. */
export interface ModuleCopy {
  readonly policyServer: string;
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
}

/**
 * Copies of modules on disk, each in the folder of its PolicyServer: `<policy server>/<hex>.wasm`. Only what was verified counts:
 * when the folder is opened, when a module arrives, and whenever one is read. No module is ever in memory as a whole. One process
 * owns the folder.
 */
export class ModuleCopies {
  readonly #dir: string;
  readonly #copies = new Map<string, ModuleCopy>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Reads the folder, and removes what is no module of its name. @throws Error when it cannot be read or written */
  async open(): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    for (const policyServer of await readdir(this.#dir)) {
      for (const name of isFolderName(policyServer) ? await readdir(join(this.#dir, policyServer)) : []) {
        await this.#recover(policyServer, name);
      }
    }
  }

  /** All copies, the oldest first. */
  list(): Iterable<ModuleCopy> {
    return this.#copies.values();
  }

  get(policyServer: string, digest: Digest): ModuleCopy | undefined {
    return this.#copies.get(keyOf(policyServer, digest));
  }

  /**
   * Writes a module while it arrives.
   * @throws RangeError beyond `maxBytes`; Error when it has another digest, or cannot be received or written
   */
  async write(
    policyServer: string,
    digest: Digest,
    content: AsyncIterable<Uint8Array>,
    maxBytes: number,
  ): Promise<ModuleCopy> {
    if (!isFolderName(policyServer)) {
      throw new Error(`no folder can have the name ${JSON.stringify(policyServer)}`);
    }
    const folder = join(this.#dir, policyServer);
    const temporary = join(folder, `${TEMPORARY_PREFIX}${randomUUID()}`);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const { size, found } = await receive(temporary, content, maxBytes);
      if (found !== digest) {
        throw new Error(`expected a module with the digest ${digest}, got ${found}`);
      }
      await rename(temporary, this.#path(policyServer, digest));
      return this.#keep({ policyServer, digest, size });
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  /** The content of a copy. A copy that turns out to be damaged is removed, and the last chunk is not sent. */
  async *read(copy: ModuleCopy): AsyncGenerator<Uint8Array, void> {
    const { policyServer, digest } = copy;
    const hash = createHash('sha256');
    let last: Buffer | undefined;
    for await (const chunk of this.#chunks(copy)) {
      if (last !== undefined) {
        yield last;
      }
      last = chunk;
      hash.update(last);
    }
    if (last === undefined || `sha256:${hash.digest('hex')}` !== digest) {
      await this.remove(policyServer, digest);
      throw new Error(`the copy of ${digest} is damaged`);
    }
    yield last;
  }

  /** A generator of its own, because an error of who receives a copy, who may go away, is thrown into {@link read}. */
  async *#chunks({ policyServer, digest }: ModuleCopy): AsyncGenerator<Buffer, void> {
    try {
      yield* createReadStream(this.#path(policyServer, digest), { highWaterMark: CHUNK_BYTES });
    } catch (error) {
      await this.remove(policyServer, digest);
      throw error;
    }
  }

  /** Removes a copy, and the folder of a PolicyServer without any. */
  async remove(policyServer: string, digest: Digest): Promise<void> {
    this.#copies.delete(keyOf(policyServer, digest));
    await rm(this.#path(policyServer, digest), { force: true }).catch(() => undefined);
  }

  async #recover(policyServer: string, name: string): Promise<void> {
    const path = join(this.#dir, policyServer, name);
    const digest = `sha256:${name.slice(0, -SUFFIX.length)}`;
    if (name.endsWith(SUFFIX) && isDigest(digest) && (await digestOfFile(path)) === digest) {
      const { size } = await stat(path);
      this.#keep({ policyServer, digest, size });
    } else {
      await rm(path, { recursive: true, force: true });
    }
  }

  #keep(copy: ModuleCopy): ModuleCopy {
    this.#copies.set(keyOf(copy.policyServer, copy.digest), copy);
    return copy;
  }

  #path(policyServer: string, digest: Digest): string {
    return join(this.#dir, policyServer, `${digest.slice('sha256:'.length)}${SUFFIX}`);
  }
}

function keyOf(policyServer: string, digest: Digest): string {
  return `${policyServer}/${digest}`;
}

/** Names of PolicyServers are names of objects; nothing else becomes a path. */
function isFolderName(policyServer: string): boolean {
  return dnsSubdomainProblems(policyServer).length === 0;
}

/** Writes a file that survives a power loss. */
async function receive(
  path: string,
  content: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<{ readonly size: number; readonly found: string }> {
  const hash = createHash('sha256');
  let size = 0;
  await using file = await open(path, 'wx', 0o600);
  for await (const chunk of content) {
    size += chunk.length;
    if (size > maxBytes) {
      throw new RangeError(`expected a module of at most ${maxBytes} bytes`);
    }
    hash.update(chunk);
    await file.writeFile(chunk);
  }
  await file.sync();
  return { size, found: `sha256:${hash.digest('hex')}` };
}

/** Undefined for what is no readable file. */
async function digestOfFile(path: string): Promise<string | undefined> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
      hash.update(chunk as Buffer);
    }
    return `sha256:${hash.digest('hex')}`;
  } catch {
    return undefined;
  }
}
