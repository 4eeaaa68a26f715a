import type { ImageCall, ImageReader, ImageRequest } from '../../engine/capabilities/index.ts';
import type { TrustRoot } from '../../modules/index.ts';
import type { SourcesConfig } from '../../modules/sources/index.ts';

/** Reads images in registries. Loads the code for that with the first call, because most policies make none. */
export class LazyImages implements ImageReader {
  readonly #sources: SourcesConfig | undefined;
  readonly #trustRoot: TrustRoot | undefined;
  #images: Promise<ImageReader> | undefined;

  /**
   * @param sources how to reach registries. Default: without `sources.yml` and credentials
   * @param trustRoot for keyless signatures. Default: none, so that they cannot be verified
   */
  constructor(sources?: SourcesConfig, trustRoot?: TrustRoot) {
    this.#sources = sources;
    this.#trustRoot = trustRoot;
  }

  async answer(request: ImageRequest, call: ImageCall): Promise<string> {
    this.#images ??= this.#load();
    return await (await this.#images).answer(request, call);
  }

  async #load(): Promise<ImageReader> {
    const { RegistryImages } = await import('./registry-images.ts');
    return new RegistryImages({ sources: this.#sources, trustRoot: this.#trustRoot });
  }
}
