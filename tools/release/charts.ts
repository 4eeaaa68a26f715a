// The charts and manifests of a release, with the digest of its image.
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseYaml } from '../../src/values/yaml/index.ts';
import { root } from '../generated-files.ts';
import { FileTree, gzip } from '../image/file-tree.ts';
import { IMAGE_MANIFEST, OciLayoutWriter } from '../image/oci-layout.ts';

export const CHARTS = ['portcullis', 'portcullis-crds'] as const;
export type ChartName = (typeof CHARTS)[number];

const MANIFESTS = 'deploy/manifests/portcullis.yaml';
/** https://helm.sh/docs/topics/registries/#helm-chart-manifest */
const CHART_CONFIG = 'application/vnd.cncf.helm.config.v1+json';
const CHART_CONTENT = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';

export interface ReleaseOptions {
  readonly version: string;
  /** With a digest. */
  readonly image: string;
  readonly created: Date;
}

/** A packed chart. */
export interface PackedChart {
  readonly name: ChartName;
  /** A tarball, as of `helm package`. */
  readonly content: Buffer;
  /** Chart.yaml. */
  readonly metadata: unknown;
}

/** Packs a chart whose default image is that of the release. */
export async function packChart(name: ChartName, { version, image, created }: ReleaseOptions): Promise<PackedChart> {
  const folder = join(root, 'deploy', 'charts', name);
  const tree = new FileTree();
  for (const path of globSync('**/*.{yaml,json,txt}', { cwd: folder })) {
    const text = await readFile(join(folder, path), 'utf8');
    tree.file(`${name}/${path}`, path === 'values.yaml' ? withImage(text, version, image) : text);
  }
  const [metadata] = parseYaml(await readFile(join(folder, 'Chart.yaml'), 'utf8'));
  return { name, content: await gzip(tree.tarball(created)), metadata };
}

/** The plain manifests with the image of the release. */
export async function manifestsOf({ version, image }: ReleaseOptions): Promise<string> {
  const text = await readFile(join(root, MANIFESTS), 'utf8');
  if (!imageOf(version).test(text)) {
    throw new Error(`${MANIFESTS} has no image portcullis:${version}: run "node tools/chart.ts"`);
  }
  return withImage(text, version, image);
}

function withImage(text: string, version: string, image: string): string {
  return text.replaceAll(imageOf(version), image);
}

function imageOf(version: string): RegExp {
  return new RegExp(`(?<![\\w./-])portcullis:${RegExp.escape(version)}(?![\\w.-])`, 'g');
}

/** Writes an OCI layout with a chart, as `helm push` stores it. @param folder is replaced */
export async function writeChartLayout(
  folder: string,
  { content, metadata }: PackedChart,
  { version }: ReleaseOptions,
): Promise<void> {
  const layout = await OciLayoutWriter.create(folder);
  const config = await layout.blob(CHART_CONFIG, JSON.stringify(metadata));
  const layers = [await layout.blob(CHART_CONTENT, content)];
  layout.tag(await layout.manifest(IMAGE_MANIFEST, { config, layers }), version);
  await layout.end();
}
