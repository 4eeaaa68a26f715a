import type { ReserveMemory } from './http/http-transfer.ts';

/** Downloads at the same time. */
export const MAX_DOWNLOADS = 64;
/** Downloads from one host at the same time: one that does not answer delays its own modules only. */
export const MAX_DOWNLOADS_PER_HOST = 8;
/** Memory for the modules of all downloads: four of the largest ones. Bytes. */
export const MAX_DOWNLOAD_BYTES = 256 * 1024 * 1024;
/** The share of each that policies of tenants get, so that they do not delay those of administrators. */
const TENANT_SHARE = 3 / 4;

interface Usage {
  downloads: number;
  bytes: number;
}

interface Waiting {
  readonly canStart: () => boolean;
  readonly start: () => void;
}

/** Where the bytes of a download are counted. */
export interface Download extends Disposable {
  /**
   * Waits until this many bytes may be in memory. They replace those that the download reserved before, so that no download
   * waits while it holds what others wait for.
   * @throws the signal's reason
   */
  readonly reserve: ReserveMemory;
}

/** Bounds the number of downloads and the memory for their modules. */
export class DownloadBudget {
  readonly #total: Usage = { downloads: 0, bytes: 0 };
  readonly #ofTenants: Usage = { downloads: 0, bytes: 0 };
  readonly #byHost = new Map<string, number>();
  readonly #ofTenantsByHost = new Map<string, number>();
  readonly #waiting = new Set<Waiting>();

  /** Waits until a download may begin. Its place is free again when the result is disposed. @throws the signal's reason */
  async begin(host: string, isForTenant: boolean, signal: AbortSignal): Promise<Download> {
    const usages = isForTenant ? [this.#total, this.#ofTenants] : [this.#total];
    const hosts = isForTenant ? [this.#byHost, this.#ofTenantsByHost] : [this.#byHost];
    let reserved = 0;
    const count = (downloads: number, bytes: number): void => {
      reserved += bytes;
      for (const byHost of hosts) {
        const used = (byHost.get(host) ?? 0) + downloads;
        if (used === 0) {
          byHost.delete(host);
        } else {
          byHost.set(host, used);
        }
      }
      for (const usage of usages) {
        usage.downloads += downloads;
        usage.bytes += bytes;
      }
      if (downloads < 0 || bytes < 0) {
        this.#startWaiting();
      }
    };
    const fits = (downloads: number, bytes: number): boolean =>
      usages.every((usage) => {
        const share = usage === this.#ofTenants ? TENANT_SHARE : 1;
        return (
          usage.downloads + downloads <= MAX_DOWNLOADS * share &&
          // One alone may be larger.
          (usage.bytes + bytes <= MAX_DOWNLOAD_BYTES * share || usage.bytes === 0)
        );
      });
    const hasHostRoom = (): boolean =>
      hosts.every((byHost) => {
        const share = byHost === this.#ofTenantsByHost ? TENANT_SHARE : 1;
        return (byHost.get(host) ?? 0) < MAX_DOWNLOADS_PER_HOST * share;
      });
    await this.#until(
      () => fits(1, 0) && hasHostRoom(),
      () => count(1, 0),
      signal,
    );
    return {
      reserve: async (bytes, whileWanted) => {
        count(0, -reserved);
        await this.#until(
          () => fits(0, bytes),
          () => count(0, bytes),
          whileWanted,
        );
      },
      [Symbol.dispose]: () => count(-1, -reserved),
    };
  }

  async #until(canStart: () => boolean, begin: () => void, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (canStart()) {
      begin();
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const start = (): void => {
      begin();
      resolve(undefined);
    };
    const waiting = { canStart, start };
    const stop = (): void => {
      // At once: an aborted download must not start any more, because its slot would never be released.
      this.#waiting.delete(waiting);
      reject(signal.reason as Error);
    };
    this.#waiting.add(waiting);
    signal.addEventListener('abort', stop, { once: true });
    try {
      await promise;
    } finally {
      this.#waiting.delete(waiting);
      signal.removeEventListener('abort', stop);
    }
  }

  /** Starts what fits now, in the order of arrival. */
  #startWaiting(): void {
    for (const waiting of this.#waiting) {
      if (waiting.canStart()) {
        this.#waiting.delete(waiting);
        waiting.start();
      }
    }
  }
}
