// Answers the capabilities oci/… from registries. Loaded with the first call.
import { EngineError, type ImageCall, type ImageReader, type ImageRequest } from '../../engine/index.ts';
import {
  anonymousSources,
  DEFAULT_SOURCES,
  hostPlatform,
  ModuleError,
  parseImage,
  readImage,
  readImageConfig,
  type RegistryReference,
  resolveDigest,
  type SourcesConfig,
  type TransferOptions,
} from '../../modules/index.ts';
import { errorText, shortened } from '../../values/index.ts';
import { NotBegun, SharedAnswers } from './shared-answers.ts';
import { TransferSlots } from './transfer-slots.ts';

/** Time limits of one transfer, which goes on when the review that needs it has ended. Milliseconds. */
const TIMEOUTS = { connectMs: 5_000, idleMs: 5_000, totalMs: 20_000 };

/** Characters of a name that a message quotes. */
const MAX_SHOWN_IMAGE = 300;

interface RegistryImagesOptions {
  /** Default: those of a server without `sources.yml`. */
  readonly sources?: SourcesConfig | undefined;
  /** For tests. Default: {@link TIMEOUTS}. */
  readonly timeouts?: TransferOptions['timeouts'];
}

/**
 * Reads registries for policies, each image at most once a minute. Policies of namespaces read without credentials, and only from
 * public addresses: they get nothing that only the policy server may read.
 */
export class RegistryImages implements ImageReader {
  readonly #options: RegistryImagesOptions;
  readonly #slots = new TransferSlots();
  /** Apart, so that tenants cannot evict the answers of others. */
  readonly #answers = { cluster: new SharedAnswers(), tenants: new SharedAnswers() };

  constructor(options: RegistryImagesOptions = {}) {
    this.#options = options;
  }

  async answer({ kind, image }: ImageRequest, { tenant, timeoutMs }: ImageCall): Promise<string> {
    const isForTenant = tenant !== undefined;
    const answers = isForTenant ? this.#answers.tenants : this.#answers.cluster;
    const waiting = new AbortController();
    const timer = setTimeout(() => waiting.abort(new WaitEnded()), Math.max(0, timeoutMs));
    try {
      const reference = parseImage(image);
      const work = async (isWanted: () => boolean): Promise<string> =>
        this.#slots.run(reference.host, tenant, async () => {
          if (!isWanted()) {
            throw new NotBegun('no policy waits for the image any longer');
          }
          return JSON.stringify(await this.#read(kind, reference, isForTenant));
        });
      return await answers.get(JSON.stringify([kind, reference.key, tenant]), work, waiting.signal);
    } catch (error) {
      throw new EngineError(
        'capability-failed',
        `cannot read the image ${shortened(image, MAX_SHOWN_IMAGE)}: ${reasonOf(error, isForTenant)}`,
        {
          cause: error,
        },
      );
    } finally {
      clearTimeout(timer);
    }
  }

  async #read(kind: ImageRequest['kind'], reference: RegistryReference, isForTenant: boolean): Promise<object> {
    const { sources = DEFAULT_SOURCES, timeouts = TIMEOUTS } = this.#options;
    const options: TransferOptions = {
      sources: isForTenant ? anonymousSources(sources) : sources,
      timeouts,
      isForTenant,
    };
    switch (kind) {
      case 'digest':
        return { digest: await resolveDigest(reference, options) };
      case 'manifest':
        return (await readImage(reference, options)).manifest;
      case 'configuration':
        return await readImageConfig(reference, hostPlatform(), options);
      default:
        return kind satisfies never;
    }
  }
}

/** The evaluation has no more time; the transfer goes on. */
class WaitEnded extends Error {
  constructor() {
    super('the registry has not answered in the time that the policy has left; the next request may have the answer');
  }
}

function reasonOf(error: unknown, isForTenant: boolean): string {
  if (error instanceof ModuleError) {
    return isForTenant ? error.tenantMessage : error.message;
  }
  return errorText(error);
}
