// Answers the capabilities oci/… from registries. Loaded with the first call.
import { EngineError } from '../../engine/index.ts';
import type { ImageCall, ImageReader, ImageRequest } from '../../engine/capabilities/index.ts';
import {
  anonymousSources,
  digestOf,
  hostPlatform,
  ModuleError,
  parseImage,
  readImage,
  readImageConfig,
  type RegistryReference,
  resolveDigest,
  type TransferOptions,
  type TrustRoot,
  verificationOf,
  verifyReference,
} from '../../modules/index.ts';
import { DEFAULT_SOURCES, type SourcesConfig } from '../../modules/sources/index.ts';
import { errorText, shortened } from '../../values/index.ts';
import { NotBegun, SharedAnswers } from './shared-answers.ts';
import { TransferSlots } from './transfer-slots.ts';

/** Time limits of one transfer, which continues after the review that started it. Milliseconds. */
const TIMEOUTS = { connectMs: 5_000, idleMs: 5_000, totalMs: 20_000 };

/** Characters of a name that a message quotes. */
const MAX_SHOWN_IMAGE = 300;

interface RegistryImagesOptions {
  /** Default: those of a server without `sources.yml`. */
  readonly sources?: SourcesConfig | undefined;
  /** For keyless signatures. Default: none, so that they cannot be verified. */
  readonly trustRoot?: TrustRoot | undefined;
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
  /** Apart, so that policies of namespaces cannot evict answers for policies of the cluster. */
  readonly #answers = { cluster: new SharedAnswers(), tenants: new SharedAnswers() };

  constructor(options: RegistryImagesOptions = {}) {
    this.#options = options;
  }

  async answer(request: ImageRequest, { tenant, timeoutMs }: ImageCall): Promise<string> {
    const { image } = request;
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
          return JSON.stringify(await this.#read(request, reference, isForTenant));
        });
      const key = digestOf(Buffer.from(JSON.stringify([request, tenant])));
      return await answers.get(key, work, waiting.signal);
    } catch (error) {
      throw new EngineError(
        'capability-failed',
        `cannot ${request.kind === 'verify' ? 'verify' : 'read'} the image ${shortened(image, MAX_SHOWN_IMAGE)}: ${reasonOf(error, isForTenant)}`,
        {
          cause: error,
        },
      );
    } finally {
      clearTimeout(timer);
    }
  }

  async #read(request: ImageRequest, reference: RegistryReference, isForTenant: boolean): Promise<object> {
    const { sources = DEFAULT_SOURCES, timeouts = TIMEOUTS } = this.#options;
    const options: TransferOptions = {
      sources: isForTenant ? anonymousSources(sources) : sources,
      timeouts,
      isForTenant,
    };
    switch (request.kind) {
      case 'digest':
        return { digest: await resolveDigest(reference, options) };
      case 'manifest':
        return (await readImage(reference, options)).manifest;
      case 'configuration':
        return await readImageConfig(reference, hostPlatform(), options);
      case 'verify':
        return await this.#verify(request, reference, options);
      default:
        return request satisfies never;
    }
  }

  /** As in Kubewarden, an image that is not signed as required is an error, not an answer. */
  async #verify(
    { variant, fields }: ImageRequest & { readonly kind: 'verify' },
    reference: RegistryReference,
    options: TransferOptions,
  ): Promise<object> {
    // The packages of Sigstore are loaded with the first verification.
    const { signatureRequirements } = await import('./signature-requirements.ts');
    const verification = verificationOf({ allOf: signatureRequirements(variant, fields) }, this.#options.trustRoot);
    const digest = await verifyReference(reference, verification, options, 'what the policy requires');
    return { is_trusted: true, digest };
  }
}

/** The evaluation has no more time; the transfer goes on. */
class WaitEnded extends Error {
  constructor() {
    super('the registry has not answered in the time that the policy has left; the next request may have the answer');
  }
}

/** For authors of policies of namespaces, where the message of modules does not fit. */
const TENANT_REASONS: Readonly<Partial<Record<ModuleError['code'], string>>> = {
  'signature-missing': 'it has no signature',
  'signature-invalid': 'its signatures are not those that the policy requires',
};

function reasonOf(error: unknown, isForTenant: boolean): string {
  if (error instanceof ModuleError) {
    return isForTenant ? (TENANT_REASONS[error.code] ?? error.tenantMessage) : error.message;
  }
  return errorText(error);
}
