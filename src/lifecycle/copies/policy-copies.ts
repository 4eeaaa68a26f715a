// Where the modules of policies are besides replicas, for their status.
import { isDigest } from '../../modules/index.ts';
import type { PolicyServerObject } from '../../resources/index.ts';
import { keptRevision } from '../rollout/modules-kept.ts';
import type { AdmissionRevision, CopyFacts } from '../rollout/admission-rollout-view.ts';
import type { CopyDirectory } from './copy-directory.ts';
import type { WantedCopies } from './wanted-copies.ts';

export interface PolicyCopiesOptions {
  readonly directory: Pick<CopyDirectory, 'count' | 'subscribe'>;
  readonly wanted: WantedCopies;
}

/** Whether the module cache of a PolicyServer outlives its pods, by what its Deployment has; undefined if that is not known. */
function isDurable(server: PolicyServerObject | undefined): boolean | undefined {
  const kind = server?.status?.moduleCache;
  return kind === undefined ? undefined : kind !== 'emptyDir';
}

export class PolicyCopies {
  readonly #options: PolicyCopiesOptions;

  constructor(options: PolicyCopiesOptions) {
    this.#options = options;
  }

  /** Copies of the modules of a policy. Undefined until controllers have answered. */
  of(
    policyServer: string,
    server: PolicyServerObject | undefined,
    revisions: readonly AdmissionRevision[],
  ): CopyFacts | undefined {
    const modules = keptRevision({ revisions })?.modules ?? [];
    const digests = modules.map(({ digest }) => digest).filter((digest) => isDigest(digest));
    const count = this.#options.directory.count(digests.map((digest) => ({ policyServer, digest })));
    return count && { ...count, isDurable: isDurable(server) };
  }

  /** Calls the listener with the ids of policies whose copies have changed. Returns a function that unsubscribes. */
  subscribe(listener: (policies: ReadonlySet<string>) => void): () => void {
    const { directory, wanted } = this.#options;
    return directory.subscribe((changed) =>
      listener(new Set([...changed].flatMap((key) => [...(wanted.byText(key)?.policies ?? [])]))),
    );
  }
}

/** For an installation whose module caches are on a disk that stays, and that has no copies. */
export const DURABLE_MODULES: Pick<PolicyCopies, 'of' | 'subscribe'> = {
  of: () => ({ controllers: 0, isRefused: false, isDurable: true }),
  subscribe: () => () => undefined,
};
