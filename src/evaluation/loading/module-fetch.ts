import {
  type FetchedModule,
  isDigest,
  ModuleError,
  ModuleStore,
  parseReference,
  type PeerAddresses,
} from '../../modules/index.ts';
import type { LoadRequest } from './load-request.ts';
import type { LoaderStart } from './loader-lane.ts';

/** Fetches modules by reference, or by the digest that a revision pins. */
export class ModuleFetch {
  /** Addresses of other replicas and controllers, which have modules as well. */
  peerAddresses: PeerAddresses;
  readonly #baseDir: string | undefined;
  readonly #store: ModuleStore;

  constructor(start: LoaderStart) {
    const { cacheDir, baseDir, sources, verification, maxModuleBytes, fetchTimeoutMs, tenantFolder, peers } = start;
    this.peerAddresses = start.peerAddresses;
    this.#baseDir = baseDir;
    this.#store = new ModuleStore({
      cacheDir,
      ...(sources === undefined ? {} : { sources }),
      ...(verification === undefined ? {} : { verification }),
      ...(maxModuleBytes === undefined ? {} : { maxModuleBytes }),
      ...(fetchTimeoutMs === undefined ? {} : { fetchTimeoutMs }),
      ...(tenantFolder === undefined ? {} : { tenantFolder }),
      ...(peers === undefined ? {} : { peers: { ...peers, addresses: () => this.peerAddresses } }),
    });
  }

  /** @throws ModuleError */
  async fetch(
    reference: string,
    { digests, from, verified, isForTenant = false }: LoadRequest,
  ): Promise<FetchedModule> {
    const digest = digests?.[reference];
    const parsed = parseReference(reference, this.#baseDir === undefined ? {} : { baseDir: this.#baseDir });
    const options = { offline: from === 'cache', isForTenant };
    if (digest === undefined) {
      const fetched = await this.#store.fetch(parsed, options);
      if (from === 'source' && fetched.sourceError !== undefined) {
        throw fetched.sourceError;
      }
      return fetched;
    }
    if (!isDigest(digest)) {
      throw new ModuleError(
        'reference-invalid',
        `${parsed.shown} is pinned to what is no digest: expected sha256: and 64 lower-case hexadecimal digits`,
      );
    }
    if (parsed.digest !== undefined && parsed.digest !== digest) {
      throw new ModuleError(
        'digest-mismatch',
        `${parsed.shown} is to be two different modules: expected ${parsed.digest} by the reference, got ${digest} pinned`,
      );
    }
    const verifiedBy = verified?.[reference];
    try {
      return await this.#store.fetch(
        { ...parsed, digest },
        { ...options, isValidated: true, ...(verifiedBy === undefined ? {} : { verifiedBy }) },
      );
    } catch (error) {
      if (error instanceof ModuleError && error.code === 'digest-mismatch' && parsed.digest === undefined) {
        throw new ModuleError(
          'digest-mismatch',
          `${parsed.shown} has another module than when this revision was validated: expected ${digest}. ` +
            'Restore that module, or change the policy so that it is validated again',
          { cause: error },
        );
      }
      throw error;
    }
  }
}
