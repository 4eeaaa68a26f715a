import { assertModulePreamble, SNIFF_BYTES } from '../reference/wasm-bytes.ts';

/** What an artifact contains, in one layer. */
export interface ArtifactContent {
  /** For messages: `WebAssembly module`. */
  readonly noun: string;
  /** Of the layer; the first one is pushed. */
  readonly mediaTypes: readonly [string, ...string[]];
  readonly configMediaType: string;
  /** Default: that of the config. */
  readonly artifactType?: string;
  /** The name that `oras pull` gives the file. */
  readonly title: string;
  /** @throws ModuleError if the bytes are something else */
  readonly check: (bytes: Uint8Array, shown: string, mediaType: string) => void;
}

/** Modules, as Kubewarden lays artifacts out, and with the type of the CNCF's guidance for WebAssembly artifacts. */
export const WASM_MODULE: ArtifactContent = {
  noun: 'WebAssembly module',
  mediaTypes: [
    'application/vnd.wasm.content.layer.v1+wasm',
    'application/vnd.module.wasm.content.layer.v1+wasm',
    'application/wasm',
  ],
  configMediaType: 'application/vnd.wasm.config.v1+json',
  title: 'policy.wasm',
  check: (bytes, shown, mediaType) => assertModulePreamble(bytes.subarray(0, SNIFF_BYTES), shown, mediaType),
};

/** Catalogues of network providers: YAML, which its reader checks. */
export const PROVIDER_CATALOGUE: ArtifactContent = {
  noun: 'provider catalogue',
  mediaTypes: ['application/vnd.portcullis.network-providers.v1+yaml'],
  // https://github.com/opencontainers/image-spec/blob/main/manifest.md#guidance-for-an-empty-descriptor
  configMediaType: 'application/vnd.oci.empty.v1+json',
  artifactType: 'application/vnd.portcullis.network-providers.v1',
  title: 'network-providers.yaml',
  check: () => {},
};
