// Payloads of the capabilities oci/….
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';

/** A policy's request about an image, which is named as in a pod: `nginx`, `ghcr.io/a/b:v1`. */
export type ImageRequest =
  | { readonly kind: 'digest' | 'manifest' | 'configuration'; readonly image: string }
  | {
      readonly kind: 'verify';
      readonly image: string;
      /** Which signatures are required, such as `SigstorePubKeyVerify`. */
      readonly variant: string;
      /** The other fields of the payload. */
      readonly fields: JsonObject;
    };

/** The policy for which a registry is read, and the time limit. */
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
const READS: Readonly<Record<string, Exclude<ImageRequest['kind'], 'verify'>>> = {
  'oci/v1/manifest_digest': 'digest',
  'oci/v1/oci_manifest': 'manifest',
  'oci/v1/oci_manifest_config': 'configuration',
};

/** Variants of `oci/v1/verify`; the second version has more. */
const FIRST_VARIANTS: ReadonlySet<string> = new Set(['SigstorePubKeyVerify', 'SigstoreKeylessVerify']);

/** Parses the payload of a capability of registries. Throws an Error whose message the guest gets. */
export function readImageRequest(capability: string, payload: JsonValue): ImageRequest {
  if (capability === 'oci/v1/verify' || capability === 'oci/v2/verify') {
    return verifyRequest(capability === 'oci/v1/verify' ? taggedFields(payload) : payload);
  }
  const kind = Object.hasOwn(READS, capability) ? READS[capability] : undefined;
  if (kind === undefined) {
    throw new Error(`unknown operation: ${capability}`);
  }
  if (typeof payload !== 'string' || payload === '') {
    throw new Error('the payload: expected the name of an image');
  }
  return { kind, image: payload };
}

/** The fields of a payload `{variant: fields}`, with the variant as their `type`. */
function taggedFields(payload: JsonValue): JsonValue {
  const [[variant, fields] = ['', null], ...more] = Object.entries(isJsonObject(payload) ? payload : {});
  if (!FIRST_VARIANTS.has(variant) || !isJsonObject(fields) || more.length > 0) {
    throw new Error(`the payload: expected an object with one of ${[...FIRST_VARIANTS].join(', ')}`);
  }
  return { ...fields, type: variant };
}

function verifyRequest(payload: JsonValue): ImageRequest {
  const { type = null, image = null, ...fields } = isJsonObject(payload) ? payload : {};
  if (typeof type !== 'string' || typeof image !== 'string' || image === '') {
    throw new Error('the payload: expected the texts type and image');
  }
  return { kind: 'verify', image, variant: type, fields };
}
