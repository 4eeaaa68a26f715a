// Payloads of the capabilities oci/….
import type { JsonValue } from '../json-text.ts';

/** What a policy wants to know about an image. */
export interface ImageRequest {
  readonly kind: 'digest' | 'manifest' | 'configuration';
  /** As in a pod: `nginx`, `ghcr.io/a/b:v1`. */
  readonly image: string;
}

/** For whom a registry is read, and how long. */
export interface ImageCall {
  /** The namespace of the policy, whose author may be a tenant; undefined for policies of the cluster. */
  readonly tenant?: string;
  readonly timeoutMs: number;
}

/** Reads images in registries. Runs in a thread that may wait. */
export interface ImageReader {
  /** The answer as JSON. Rejects with an Error whose message the guest gets. */
  answer(request: ImageRequest, call: ImageCall): Promise<string>;
}

/** Capabilities whose payload is the name of an image. */
const READS: Readonly<Record<string, ImageRequest['kind']>> = {
  'oci/v1/manifest_digest': 'digest',
  'oci/v1/oci_manifest': 'manifest',
  'oci/v1/oci_manifest_config': 'configuration',
};

/** Parses the payload of a capability of registries. Throws an Error whose message the guest gets. */
export function readImageRequest(capability: string, payload: JsonValue): ImageRequest {
  const kind = Object.hasOwn(READS, capability) ? READS[capability] : undefined;
  if (kind === undefined) {
    throw new Error(`unknown operation: ${capability}`);
  }
  if (typeof payload !== 'string' || payload === '') {
    throw new Error('the payload: expected the name of an image');
  }
  return { kind, image: payload };
}
