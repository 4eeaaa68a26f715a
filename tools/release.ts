// Makes a release in the folder release/: npm package, image, charts, manifests, bills of materials, changelog and checksums. Then
// pushes the image and the charts, and tags the commit. `npm run release -- --registry HOST/PATH`; with `--dry-run`, nothing is
// pushed or tagged. docs/releasing.md
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './generated-files.ts';
import { type BuiltImage, buildImage } from './image/build-image.ts';
import { timestamp } from './image/image-config.ts';
import { packPackage } from './package/pack.ts';
import { changelog, LOG_FORMAT, parseCommits } from './release/changelog.ts';
import { CHARTS, manifestsOf, packChart, type ReleaseOptions, writeChartLayout } from './release/charts.ts';
import { git } from './work-tree.ts';

const FOLDER = join(root, 'release');
const IMAGE = join(FOLDER, 'image');
/** Layouts of charts, which are pushed. */
const LAYOUTS = join(FOLDER, 'charts', 'layouts');

const { values: flags } = parseArgs({
  options: {
    registry: { type: 'string' },
    'dry-run': { type: 'boolean', default: false },
    'sources-path': { type: 'string' },
  },
});
const isDryRun = flags['dry-run'];
const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
const tag = `v${version}`;
const created = new Date(Number(git('log', '-1', '--format=%ct')) * 1000);

/** Why this commit cannot be released; undefined if it can. */
function problem(): string | undefined {
  if (!isDryRun && flags.registry === undefined) {
    return 'a release needs --registry HOST/PATH, or --dry-run';
  }
  if (git('tag', '--list', tag) !== '') {
    return `the tag ${tag} exists: raise the version in package.json, and run "npm install --package-lock-only" and "node tools/chart.ts"`;
  }
  return !isDryRun && git('status', '--porcelain') !== '' ? 'there are changes that are not committed' : undefined;
}

/** Writes all files of the release but the checksums. */
async function build(): Promise<ReleaseOptions> {
  await rm(FOLDER, { recursive: true, force: true });
  await mkdir(LAYOUTS, { recursive: true });
  const { path } = await packPackage(FOLDER);
  const image = await buildImage({ folder: IMAGE, tarball: path });
  const options = { version, created, image: `${placeOf('portcullis')}:${version}@${image.digest}` };
  await writeSboms(image);
  for (const name of CHARTS) {
    const chart = await packChart(name, options);
    await writeFile(join(FOLDER, 'charts', `${name}-${version}.tgz`), chart.content);
    await writeChartLayout(join(LAYOUTS, name), chart, options);
  }
  await writeFile(join(FOLDER, 'portcullis.yaml'), await manifestsOf(options));
  await writeFile(join(FOLDER, 'CHANGELOG.md'), changelog(version, timestamp(created).slice(0, 10), commits()));
  return options;
}

function placeOf(repository: string): string {
  return flags.registry === undefined ? repository : `${flags.registry.replace(/\/$/, '')}/${repository}`;
}

async function writeSboms({ platforms }: BuiltImage): Promise<void> {
  for (const { architecture, sbom } of platforms) {
    await writeFile(join(FOLDER, `portcullis-${version}-linux-${architecture}.spdx.json`), sbom);
  }
}

/** The commits since the last tag. */
function commits(): ReturnType<typeof parseCommits> {
  const [last] = git('tag', '--list', 'v*', '--merged', 'HEAD', '--sort=-creatordate').split('\n');
  const range = last === undefined || last === '' ? 'HEAD' : `${last}..HEAD`;
  return parseCommits(git('log', '--no-merges', `--format=${LOG_FORMAT}`, range));
}

/** In the format of sha256sum. Blobs of layouts are named by their digests. */
async function writeChecksums(): Promise<void> {
  const found = globSync('**/*', { cwd: FOLDER, withFileTypes: true, exclude: ['**/blobs/**'] });
  const paths = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const lines = await Promise.all(
    paths.toSorted().map(async (path) => {
      const digest = createHash('sha256')
        .update(await readFile(path))
        .digest('hex');
      return `${digest}  ${path.slice(FOLDER.length + 1)}\n`;
    }),
  );
  await writeFile(join(FOLDER, 'SHA256SUMS'), lines.join(''));
}

function push(layout: string, repository: string): void {
  const sources = flags['sources-path'] === undefined ? [] : ['--sources-path', flags['sources-path']];
  const program = join(root, 'bin', 'portcullis.mjs');
  const args = [program, 'push', layout, `registry://${placeOf(repository)}:${version}`, ...sources];
  execFileSync(process.execPath, args, { stdio: 'inherit' });
}

const reason = problem();
if (reason !== undefined) {
  console.error(`error: ${reason}`);
  process.exit(2);
}
const { image } = await build();
await writeChecksums();
console.log(`${version} is in release/, with the image ${image}`);
if (isDryRun) {
  console.log('Nothing was pushed or tagged (--dry-run).');
} else {
  push(IMAGE, 'portcullis');
  CHARTS.forEach((name) => push(join(LAYOUTS, name), `charts/${name}`));
  git('tag', '--annotate', tag, '--message', `Portcullis ${version}`);
  console.log(
    `Tagged ${tag}. Publish the tag with "git push origin ${tag}", the package with "npm publish release/portcullis-${version}.tgz".`,
  );
}
