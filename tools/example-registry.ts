// Writes examples/registry: the OCI layout with the module of the example policy that comes from a registry, laid out as Kubewarden's
// artifacts are. `npm run examples:build`.
//
//   example-registry.ts [--check]
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readMetadata } from '../src/modules/index.ts';
import { root, writeGenerated } from './generated-files.ts';

const MODULE = 'examples/required-labels/policy.wasm';
const FOLDER = 'examples/registry';
const NAME = 'registry.example/required-labels:1.0.0';

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const files = new Map<string, string | Uint8Array>();

function blob(mediaType: string, content: string | Uint8Array): Descriptor {
  const bytes = Buffer.from(content);
  const hex = createHash('sha256').update(bytes).digest('hex');
  files.set(`${FOLDER}/blobs/sha256/${hex}`, bytes);
  return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
}

const module = readFileSync(join(root, MODULE));
const manifestType = 'application/vnd.oci.image.manifest.v1+json';
const manifest = blob(
  manifestType,
  JSON.stringify({
    schemaVersion: 2,
    mediaType: manifestType,
    config: blob('application/vnd.wasm.config.v1+json', '{}'),
    layers: [blob('application/vnd.wasm.content.layer.v1+wasm', module)],
    annotations: readMetadata(module)?.annotations ?? {},
  }),
);
const index = {
  schemaVersion: 2,
  mediaType: 'application/vnd.oci.image.index.v1+json',
  manifests: [{ ...manifest, annotations: { 'org.opencontainers.image.ref.name': NAME } }],
};
files.set(`${FOLDER}/oci-layout`, '{"imageLayoutVersion":"1.0.0"}\n');
files.set(`${FOLDER}/index.json`, `${JSON.stringify(index, undefined, 2)}\n`);

writeGenerated({ files, folders: [FOLDER], source: MODULE, tool: 'tools/example-registry.ts' });
