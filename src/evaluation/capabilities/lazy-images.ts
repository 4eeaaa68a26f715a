import type { ImageCall, ImageReader, ImageRequest } from '../../engine/index.ts';
import type { SourcesConfig } from '../../modules/index.ts';

/** Reads images in registries. Loads the code for that with the first call, because most policies make none. */
export class LazyImages implements ImageReader {
  readonly #sources: SourcesConfig | undefined;
  #images: Promise<ImageReader> | undefined;

  /** @param sources how to reach registries. Default: without `sources.yml` and credentials */
  constructor(sources?: SourcesConfig) {
    this.#sources = sources;
  }

  async answer(request: ImageRequest, call: ImageCall): Promise<string> {
    this.#images ??= this.#load();
    return await (await this.#images).answer(request, call);
  }

  async #load(): Promise<ImageReader> {
    const { RegistryImages } = await import('./registry-images.ts');
    return new RegistryImages({ sources: this.#sources });
  }
}
