// The software bill of materials of an image (SPDX 2.3, https://spdx.github.io/spdx-spec/v2.3/): that of npm for the locked
// dependencies, with Node and the packages of Debian. The same image has the same one.
import { root } from '../generated-files.ts';
import type { Architecture, DebianLock, DebianPackage } from './debian-packages.ts';
import { type Origin, timestamp } from './image-config.ts';
import { digestOf } from './oci-layout.ts';
import { output } from './output.ts';

export const SPDX = 'application/spdx+json';
/** Copies of Node for other platforms. */
const COPY_OF_NODE = /^node-(?:linux|darwin|win)-/;

interface SpdxPackage {
  readonly SPDXID: string;
  readonly name: string;
  readonly versionInfo: string;
  readonly [field: string]: unknown;
}

interface SpdxRelationship {
  readonly spdxElementId: string;
  readonly relatedSpdxElement: string;
  readonly relationshipType: string;
}

interface SpdxDocument {
  readonly name: string;
  readonly documentDescribes: readonly string[];
  readonly packages: readonly SpdxPackage[];
  readonly relationships: readonly SpdxRelationship[];
}

/** The SBOM of the npm package: its locked production dependencies. */
export async function npmSbom(): Promise<SpdxDocument> {
  const flags = ['--sbom-format=spdx', '--sbom-type=application', '--package-lock-only', '--omit=dev'];
  const printed = JSON.parse(await output('npm', ['sbom', ...flags, '--loglevel=error'], root)) as SpdxDocument;
  const copies = new Set(printed.packages.filter(({ name }) => COPY_OF_NODE.test(name)).map(({ SPDXID }) => SPDXID));
  return {
    ...printed,
    packages: printed.packages.filter(({ SPDXID }) => !copies.has(SPDXID)),
    relationships: printed.relationships.filter(
      ({ spdxElementId, relatedSpdxElement }) => !copies.has(spdxElementId) && !copies.has(relatedSpdxElement),
    ),
  };
}

/** The SBOM of the image of a platform. */
export function imageSbom(
  npm: SpdxDocument,
  { release, packages }: DebianLock,
  {
    architecture,
    node,
    origin,
  }: { readonly architecture: Architecture; readonly node: string; readonly origin: Origin },
): Buffer {
  const [product = ''] = npm.documentDescribes;
  const added = [
    nodePackage(node),
    ...packages[architecture].map((pinned) => debianPackage(pinned, architecture, release)),
  ];
  const content = {
    ...npm,
    name: `portcullis-${origin.version}-linux-${architecture}`,
    creationInfo: { created: timestamp(origin.created), creators: ['Tool: npm-sbom', 'Tool: portcullis-tools-image'] },
    packages: [...npm.packages, ...added],
    relationships: [
      ...npm.relationships,
      ...added.map(({ SPDXID }) => ({
        spdxElementId: product,
        relatedSpdxElement: SPDXID,
        relationshipType: 'DEPENDS_ON',
      })),
    ],
  };
  const { documentNamespace: _, ...unnamed } = content as typeof content & { documentNamespace?: string };
  const digest = digestOf(Buffer.from(JSON.stringify(unnamed))).slice('sha256:'.length);
  return Buffer.from(`${JSON.stringify({ ...unnamed, documentNamespace: `urn:sha256:${digest}` }, undefined, 2)}\n`);
}

/** With the name by which vulnerabilities of Node are published. */
function nodePackage(version: string): SpdxPackage {
  return {
    ...commonFields('node', version, `pkg:generic/node@${version}`),
    externalRefs: [
      reference('PACKAGE-MANAGER', 'purl', `pkg:generic/node@${version}`),
      reference('SECURITY', 'cpe23Type', `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`),
    ],
  };
}

function debianPackage(
  { name, version, sha256 }: DebianPackage,
  architecture: Architecture,
  release: string,
): SpdxPackage {
  const place = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}&distro=${release}`;
  return {
    ...commonFields(name, version, place),
    checksums: [{ algorithm: 'SHA256', checksumValue: sha256 }],
  };
}

function commonFields(name: string, version: string, purl: string): SpdxPackage {
  return {
    name,
    SPDXID: `SPDXRef-Package-${`${name}-${version}`.replaceAll(/[^A-Za-z0-9.-]/g, '-')}`,
    versionInfo: version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    externalRefs: [reference('PACKAGE-MANAGER', 'purl', purl)],
  };
}

function reference(referenceCategory: string, referenceType: string, referenceLocator: string): object {
  return { referenceCategory, referenceType, referenceLocator };
}
