// Builds the image: an OCI layout with all platforms, without a container engine and without a base image. `npm run image`.
//   npm run image [-- --output FOLDER]   default: release/image
//   npm run image -- --update            pins the current versions of Debian's packages
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './generated-files.ts';
import { buildImage } from './image/build-image.ts';
import { updateDebianLock } from './image/debian-packages.ts';
import { packPackage } from './package/pack.ts';

const { values } = parseArgs({
  options: { output: { type: 'string', default: join(root, 'release', 'image') }, update: { type: 'boolean' } },
});

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

async function build(folder: string): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'portcullis-image-'));
  try {
    const { path } = await packPackage(scratch);
    const { digest, platforms } = await buildImage({ folder, tarball: path });
    for (const { architecture, manifest, layers } of platforms) {
      console.log(`linux/${architecture} ${manifest.digest}`);
      for (const { comment, digest: layer, size, uncompressedSize } of layers) {
        console.log(`  ${layer} ${comment}: ${megabytes(size)}, uncompressed ${megabytes(uncompressedSize)}`);
      }
    }
    console.log(`${relative(process.cwd(), folder)} ${digest}`);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

await (values.update === true ? updateDebianLock() : build(values.output));
