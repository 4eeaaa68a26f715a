// Writes examples/registry: the OCI layout with the module of the example policy that comes from a registry, laid out as Kubewarden's
// artifacts are, and its signature as cosign makes them; and examples/verification.yml with the public key. `npm run examples:build`.
//
//   example-registry.ts [--check]
import { createHash, generateKeyPairSync, sign, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { readMetadata } from '../src/modules/index.ts';
import { root, writeGenerated } from './generated-files.ts';

const MODULE = 'examples/required-labels/policy.wasm';
const FOLDER = 'examples/registry';
const VERIFICATION = 'examples/verification.yml';
const REPOSITORY = 'registry.example/required-labels';
const TAG = '1.0.0';
const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
const SIGNATURE_ANNOTATION = 'dev.cosignproject.cosign/signature';

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface Signed {
  /** PEM. */
  readonly key: string;
  /** Base64. */
  readonly signature: string;
}

const files = new Map<string, string | Uint8Array>();

function blob(mediaType: string, content: string | Uint8Array): Descriptor {
  const bytes = Buffer.from(content);
  const hex = createHash('sha256').update(bytes).digest('hex');
  files.set(`${FOLDER}/blobs/sha256/${hex}`, bytes);
  return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
}

/** Stores a manifest, and returns its entry of the index. */
function tagged(tag: string, content: object): Descriptor {
  const manifest = blob(MANIFEST_TYPE, JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST_TYPE, ...content }));
  return { ...manifest, annotations: { 'org.opencontainers.image.ref.name': `${REPOSITORY}:${tag}` } };
}

/** The committed signature while it is valid. Otherwise one by a new key, which is not kept. */
function signed(claim: string): Signed {
  const committed = committedSignature();
  if (committed !== undefined && isValid(claim, committed)) {
    return committed;
  }
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    key: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    signature: sign('sha256', Buffer.from(claim), privateKey).toString('base64'),
  };
}

function isValid(claim: string, { key, signature }: Signed): boolean {
  return verify('sha256', Buffer.from(claim), key, Buffer.from(signature, 'base64'));
}

function committedSignature(): Signed | undefined {
  try {
    const text = (path: string): string => readFileSync(join(root, path), 'utf8');
    const { manifests } = JSON.parse(text(`${FOLDER}/index.json`)) as { manifests: readonly Descriptor[] };
    const hex = manifests[1]?.digest.slice('sha256:'.length);
    const { layers } = JSON.parse(text(`${FOLDER}/blobs/sha256/${hex}`)) as { layers: readonly Descriptor[] };
    const signature = layers[0]?.annotations?.[SIGNATURE_ANNOTATION] ?? '';
    const { allOf } = load(text(VERIFICATION)) as { allOf: readonly { key: string }[] };
    return { signature, key: allOf[0]?.key ?? '' };
  } catch {
    return undefined;
  }
}

const module = readFileSync(join(root, MODULE));
const artifact = tagged(TAG, {
  config: blob('application/vnd.wasm.config.v1+json', '{}'),
  layers: [blob('application/vnd.wasm.content.layer.v1+wasm', module)],
  annotations: readMetadata(module)?.annotations ?? {},
});
const claim = JSON.stringify({
  critical: {
    identity: { 'docker-reference': REPOSITORY },
    image: { 'docker-manifest-digest': artifact.digest },
    type: 'cosign container image signature',
  },
  optional: null,
});
const { key, signature } = signed(claim);
const signatures = tagged(`${artifact.digest.replace(':', '-')}.sig`, {
  config: blob('application/vnd.oci.image.config.v1+json', '{}'),
  layers: [
    {
      ...blob('application/vnd.dev.cosign.simplesigning.v1+json', claim),
      annotations: { [SIGNATURE_ANNOTATION]: signature },
    },
  ],
});
const index = {
  schemaVersion: 2,
  mediaType: 'application/vnd.oci.image.index.v1+json',
  manifests: [artifact, signatures],
};
files.set(`${FOLDER}/oci-layout`, '{"imageLayoutVersion":"1.0.0"}\n');
files.set(`${FOLDER}/index.json`, `${JSON.stringify(index, undefined, 2)}\n`);
files.set(
  VERIFICATION,
  `# The signature that the module in registry/ has. The private key was not kept.
apiVersion: v1
allOf:
  - kind: pubKey
    owner: the examples of Portcullis
    key: |
${key.trimEnd().replaceAll(/^/gm, '      ')}
`,
);

writeGenerated({ files, folders: [FOLDER], source: MODULE, tool: 'tools/example-registry.ts' });
